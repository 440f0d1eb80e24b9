import Model
import SystemIO
import TestSupport
import Testing

@testable import Team

/// Several brokers with one registry.
@Suite(.timeLimit(.minutes(1)), .scratchFolder) struct TeamRegistryTests {
    private let scratch = ScratchFolder.current
    private let clock = ManualClock()
    private let inner: InMemoryTeamStore

    init() { inner = InMemoryTeamStore(clock: clock) }

    private struct Broker: Sendable {
        let store: TestStore
        let registry: TeamRegistry

        /// Returns the events until one meets the condition, with that one.
        @discardableResult
        func events(until isLast: (TeamEvent) -> Bool) async throws -> [TeamEvent] {
            var events: [TeamEvent] = []
            for await event in registry.watcher.events {
                events.append(event)
                if isLast(event) { return events }
            }
            throw TestSupportError("the watcher ended without the wanted event")
        }

        func publish(_ endpoints: String..., devices: [Device] = []) throws {
            registry.publisher.setHost(try Values.teamHost(registry.membership.host.text))
            let endpoints = try endpoints.map { try Values.endpoint($0) }
            registry.publisher.setEntries(endpoints: endpoints, devices: devices)
        }
    }

    private func makeBroker(_ name: String, in scratch: ScratchFolder) async throws -> Broker {
        let folder = try scratch.makeFolder(name)
        let store = TestStore(inner)
        let membership = TeamMembership(
            team: Values.team,
            host: try Values.host(name),
            etcd: [],
            authority: try Values.host("lab1")
        )
        let members = try await TeamMembers(in: folder, logger: Values.logger)
        let registry = TeamRegistry(
            membership,
            store: store,
            members: members,
            clock: clock,
            now: { Values.date },
            logger: Values.logger
        )
        return Broker(store: store, registry: registry)
    }

    private func withTeam(_ body: @Sendable (TeamAuthority) async throws -> Void) async throws {
        let authority = TeamAuthority(store: inner)
        try await authority.create(Values.team)
        for name in ["lab1", "lab2"] { try await authority.add(try Values.member(name)) }
        try await body(authority)
    }

    private static func isEndpoint(_ id: String) -> (TeamEvent) -> Bool {
        { event in if case .endpoint(let endpoint) = event { endpoint.id.text == id } else { false } }
    }

    @Test func `two brokers see the endpoints and phones of each other`() async throws {
        try await withTeam { _ in
            let lab1 = try await makeBroker("lab1", in: scratch)
            let lab2 = try await makeBroker("lab2", in: scratch)
            try await withRunning([lab1.registry, lab2.registry]) {
                try lab1.publish("shop", devices: [try Values.device(1)])
                try lab2.publish("bank")

                try await lab1.events(until: Self.isEndpoint("bank.lab2"))
                try await lab2.events(until: Self.isEndpoint("shop.lab1"))
                #expect(lab2.registry.watcher.routes(to: try Values.udid(1)).map(\.host.name.text) == ["lab1"])
            }
        }
    }

    @Test func `the entries of a stopped broker disappear at once, those of a crashed one after 10 seconds`()
        async throws
    {
        try await withTeam { _ in
            let lab1 = try await makeBroker("lab1", in: scratch)
            let (host, bank) = (try Values.host("lab2"), try Values.id("bank.lab2"))
            try await withRunning([lab1.registry]) {
                let stopped = try await makeBroker("lab2", in: scratch)
                try await withRunning([stopped.registry]) {
                    try stopped.publish("bank")
                    try await lab1.events(until: Self.isEndpoint("bank.lab2"))
                }
                try await lab1.events { $0 == .endpointRemoved(bank) }

                let crashed = try await makeBroker("lab2", in: scratch)
                try await withRunning([crashed.registry]) {
                    try crashed.publish("bank")
                    try await lab1.events(until: Self.isEndpoint("bank.lab2"))
                    crashed.store.fail(with: TestStore.unreachable, endsStreams: false)
                    for _ in 0..<10 {
                        await clock.waitForSleepers(3)
                        clock.advance(by: .seconds(1))
                    }
                    inner.expireLeases()
                    try await lab1.events { $0 == .hostRemoved(host) }
                }
            }
        }
    }

    @Test func `a removed host disappears, and is refused after a restart without the registry`() async throws {
        try await withTeam { authority in
            let (lab1, lab2) = (try await makeBroker("lab1", in: scratch), try await makeBroker("lab2", in: scratch))
            let member = try Values.member("lab2")
            try await withRunning([lab1.registry, lab2.registry]) {
                try lab2.publish("bank")
                try await lab1.events(until: Self.isEndpoint("bank.lab2"))
                #expect(lab1.registry.members.accepts(member.name, key: member.key))

                try await authority.remove(member.name)

                let events = try await lab1.events { $0 == .memberRemoved(member.name) }
                #expect(events.contains(.endpointRemoved(try Values.id("bank.lab2"))))
            }

            inner.isReachable = false
            let restarted = try await TeamMembers(in: scratch.file("lab1"), logger: Values.logger)
            #expect(!restarted.accepts(member.name, key: member.key))
            #expect(restarted[try Values.host("lab1")] != nil)
        }
    }

    @Test func `a restarted broker's endpoints keep their IDs, and never disappear`() async throws {
        try await withTeam { _ in
            let lab1 = try await makeBroker("lab1", in: scratch)
            try await withRunning([lab1.registry]) {
                let crashed = try await makeBroker("lab2", in: scratch)
                try await withRunning([crashed.registry]) {
                    try crashed.publish("bank")
                    try await lab1.events(until: Self.isEndpoint("bank.lab2"))
                    // The crash: the process cannot revoke its lease.
                    crashed.store.fail(with: TestStore.unreachable, endsStreams: false)
                }
                let restarted = try await makeBroker("lab2", in: scratch)
                try await withRunning([restarted.registry]) {
                    try restarted.publish("bank")
                    restarted.registry.publisher.put(try Values.endpoint("marker"))

                    let events = try await lab1.events(until: Self.isEndpoint("marker.lab2"))
                    #expect(!events.contains { if case .endpointRemoved = $0 { true } else { false } })
                }
            }
        }
    }
}
