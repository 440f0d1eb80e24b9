import FoundationEssentials
import Model
import SystemIO
import TestSupport
import Testing

@testable import Team

@Suite(.timeLimit(.minutes(1))) struct TeamPublisherTests {
    private let clock = ManualClock()
    private let store: TestStore
    private let host: HostName

    init() throws {
        store = TestStore(InMemoryTeamStore(clock: clock))
        host = try Values.host("lab1")
    }

    private struct Broker {
        let session: TeamSession
        let publisher: TeamPublisher
    }

    private func makeBroker() -> Broker {
        let session = TeamSession(store: store, clock: clock, logger: Values.logger)
        let publisher = TeamPublisher(host: host, session: session)
        return Broker(session: session, publisher: publisher)
    }

    /// Runs a broker that has published `endpoints`.
    private func withPublished(
        _ endpoints: [Endpoint] = [],
        devices: [Device] = [],
        _ body: @Sendable (Broker) async throws -> Void
    ) async throws {
        let broker = makeBroker()
        try await withRunning([broker.session, broker.publisher]) {
            try publish(endpoints, devices: devices, by: broker)
            try await waitForKeys(endpoints.count + devices.count + 1)
            try await body(broker)
        }
    }

    private func publish(_ endpoints: [Endpoint], devices: [Device] = [], by broker: Broker) throws {
        broker.publisher.setHost(try Values.teamHost("lab1"))
        broker.publisher.setEntries(endpoints: endpoints, devices: devices)
    }

    private func keys() async throws -> [String] {
        try await store.inner.list(TeamKey.root).entries.map { String($0.key.dropFirst(TeamKey.root.count)) }
    }

    private func waitForKeys(_ count: Int) async throws {
        try await eventually("there are \(count) keys") { try await keys().count == count }
    }

    /// Waits until the publisher has nothing to write: a change that is published after all others.
    private func waitForMarker(_ broker: Broker, _ name: String = "marker") async throws {
        broker.publisher.put(try Values.endpoint(name))
        try await eventually("the marker is published") { try await keys().contains("ep/lab1/\(name)") }
    }

    @Test func `the host, its endpoints and its phones are published`() async throws {
        try await withPublished([Values.endpoint("shop")], devices: [Values.device(1)]) { _ in
            let udid = try Values.udid(1)
            #expect(try await keys() == ["dev/lab1/\(udid).usb", "ep/lab1/shop", "host/lab1"])
        }
    }

    @Test func `nothing is published before the whole list is known`() async throws {
        let broker = makeBroker()
        try await withRunning([broker.session, broker.publisher]) {
            try await eventually("there is a lease") { broker.session.currentLease != nil }
            broker.publisher.setHost(try Values.teamHost("lab1"))
            broker.publisher.put(try Values.endpoint("shop"))
            #expect(store.record.writes.isEmpty && store.record.lists == 0)

            broker.publisher.setEntries(endpoints: [try Values.endpoint("shop")], devices: [])

            try await waitForKeys(2)
        }
    }

    @Test func `only changes are written`() async throws {
        try await withPublished([Values.endpoint("one"), Values.endpoint("two")]) { broker in
            let before = store.record.writes.count

            broker.publisher.put(try Values.endpoint("one", seen: 60))
            broker.publisher.setHost(try Values.teamHost("lab1"))
            broker.publisher.setEntries(
                endpoints: [try Values.endpoint("one", seen: 90), try Values.endpoint("two")],
                devices: []
            )
            try await waitForMarker(broker)

            #expect(store.record.writes.dropFirst(before).flatMap(\.self).count == 1)
        }
    }

    @Test func `an idle broker writes nothing but renewals`() async throws {
        try await withPublished([Values.endpoint("one")]) { _ in
            let revision = store.inner.revision
            for _ in 0..<60 {
                await clock.waitForSleepers(2)
                clock.advance(by: .seconds(1))
            }
            await clock.waitForSleepers(2)

            #expect(store.inner.revision == revision)
            #expect(store.record.renewals == 20)
        }
    }

    @Test func `a removed endpoint and an unplugged phone are deleted`() async throws {
        try await withPublished([Values.endpoint("one"), Values.endpoint("two")], devices: [Values.device(1)]) {
            broker in
            broker.publisher.remove(try Values.id("one"))
            broker.publisher.remove(try Values.udid(1), .usb)

            try await waitForKeys(2)
            #expect(try await keys() == ["ep/lab1/two", "host/lab1"])
        }
    }

    @Test func `a new list deletes what is gone`() async throws {
        try await withPublished([Values.endpoint("one"), Values.endpoint("two")]) { broker in
            broker.publisher.setEntries(
                endpoints: [try Values.endpoint("two"), try Values.endpoint("three")],
                devices: []
            )
            try await eventually("the entries are replaced") {
                try await keys() == ["ep/lab1/three", "ep/lab1/two", "host/lab1"]
            }
        }
    }

    @Test func `an endpoint of another host is never published`() async throws {
        let remote = try Values.endpoint("shop.lab2")
        try await withPublished([Values.endpoint("one")]) { broker in
            broker.publisher.put(remote)
            broker.publisher.setEntries(endpoints: [try Values.endpoint("one"), remote], devices: [])
            try await waitForMarker(broker)

            #expect(try await keys() == ["ep/lab1/marker", "ep/lab1/one", "host/lab1"])
        }
    }

    @Test func `250 endpoints are written in batches of 100`() async throws {
        let endpoints = try (0..<250).map { try Values.endpoint("app-\($0)") }
        try await withPublished(endpoints) { _ in #expect(store.record.writes.map(\.count) == [100, 100, 51]) }
    }

    @Test func `changes during a running write are in the next one, together`() async throws {
        try await withPublished([Values.endpoint("one")]) { broker in
            let before = store.record.writes.count
            store.hold(behind: AsyncLatch())
            broker.publisher.put(try Values.endpoint("one", state: .suspect))
            try await eventually("the write waits") { store.heldCalls == 1 }

            for number in 0..<5 { broker.publisher.put(try Values.endpoint("new-\(number)")) }
            broker.publisher.put(try Values.endpoint("one", state: .offline))
            store.release()
            try await waitForKeys(7)

            #expect(store.record.writes.dropFirst(before).map(\.count) == [1, 6])
        }
    }

    @Test func `a write without an answer is repeated`() async throws {
        try await withPublished([Values.endpoint("one")]) { broker in
            store.loseNextAnswer()
            broker.publisher.put(try Values.endpoint("one", state: .suspect))
            try await eventually("the publisher waits") { store.record.writes.last?.count == 1 }
            broker.publisher.put(try Values.endpoint("one"))
            await clock.waitForSleepers(3)
            clock.advance(by: .milliseconds(100))
            try await waitForMarker(broker)

            let value = try await store.inner.list("\(TeamKey.root)ep/lab1/one").entries.first?.value
            #expect(value.flatMap { TeamCoding.value(TeamEndpoint.self, from: $0) }?.state == .online)
        }
    }

    @Test func `after the loss of the lease everything is published again, with a higher generation`() async throws {
        try await withPublished([Values.endpoint("one")]) { broker in
            let first = try #require(broker.session.currentLease)
            try await store.inner.revokeSessionLease(first.id)
            #expect(try await keys() == [])

            // The write tells the publisher that the lease has ended.
            broker.publisher.put(try Values.endpoint("two"))
            try await waitForKeys(3)

            let value = try await store.inner.list(TeamKey.host(host).text).entries.first?.value
            let published = value.flatMap { TeamCoding.value(TeamHost.self, from: $0) }
            #expect(published?.generation == broker.session.currentLease?.generation)
            #expect(published.map { $0.generation > first.generation } == true)
        }
    }

    @Test func `changes while the registry is unreachable are published afterwards`() async throws {
        try await withPublished([Values.endpoint("one"), Values.endpoint("two")]) { broker in
            store.fail(with: TestStore.unreachable)
            broker.publisher.remove(try Values.id("one"))
            broker.publisher.put(try Values.endpoint("three"))
            await clock.waitForSleepers(3)
            store.fail(with: nil)
            clock.advance(by: .milliseconds(100))

            try await eventually("the changes are there") {
                try await keys() == ["ep/lab1/three", "ep/lab1/two", "host/lab1"]
            }
        }
    }

    @Test func `a restarted broker keeps the entries of its crashed process, and deletes the others`() async throws {
        let old = try await store.inner.grantSessionLease(timeToLive: .seconds(10))
        for key in ["ep/lab1/shop", "ep/lab1/gone", "dev/lab1/\(try Values.udid(1)).usb", "ep/lab10/other"] {
            let write = TeamStoreWrite.put(key: TeamKey.root + key, value: [], sessionLease: old)
            _ = try await store.inner.write([write], if: nil)
        }
        var changes = store.inner.changes(of: TeamKey.root, after: store.inner.revision).makeAsyncIterator()
        let broker = makeBroker()
        try await withRunning([broker.session, broker.publisher]) {
            try publish([Values.endpoint("shop")], by: broker)
            try await eventually("the publication is complete") {
                try await keys() == ["ep/lab1/shop", "ep/lab10/other", "host/lab1"]
            }

            clock.advance(by: .seconds(3))
            await clock.waitForSleepers(2)
            clock.advance(by: .seconds(3))
            await clock.waitForSleepers(2)
            clock.advance(by: .seconds(4))

            // The old lease has ended, with the entry that nothing published again.
            #expect(try await keys() == ["ep/lab1/shop", "host/lab1"])
        }
        let first = try await changes.next()
        #expect(first?.changes.contains(.delete(key: TeamKey.root + "ep/lab1/shop")) == false)
    }

    @Test func `a graceful stop deletes the entries of the host`() async throws {
        try await withPublished([Values.endpoint("shop")]) { _ in }

        #expect(try await keys() == [])
    }

    @Test(arguments: [
        (0..<100).map { "[2001:db8:1234:5678:9abc:def0:1234:\($0)]:7284" },
        (10..<26).map { "lab\($0)." + String(repeating: "a", count: 249) },
    ])
    func `many addresses, or long ones, are cut so that the host's value fits`(addresses: [String]) async throws {
        let broker = makeBroker()
        try await withRunning([broker.session, broker.publisher]) {
            broker.publisher.setHost(
                TeamHost(name: host, version: "1", addresses: addresses, since: Values.date, generation: 0)
            )
            broker.publisher.setEntries(endpoints: [], devices: [])
            try await waitForKeys(1)

            let value = try #require(try await store.inner.list(TeamKey.root).entries.first?.value)
            #expect(value.count <= TeamCoding.valueLimit)
            let published = try #require(TeamCoding.value(TeamHost.self, from: value)).addresses
            #expect(published.count >= 5 && published == Array(addresses.prefix(published.count)))
        }
    }
}
