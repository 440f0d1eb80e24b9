import AccessControl
import Logging
import Model
import Synchronization
import SystemIO
import TestSupport
import Testing

@testable import Team

/// The registry with a host that writes more than one answer can have.
@Suite(.timeLimit(.minutes(1)), .scratchFolder) struct TeamListingTests {
    private let scratch = ScratchFolder.current
    private let clock = ManualClock()
    private let store: TestStore

    init() { store = TestStore(InMemoryTeamStore(clock: clock)) }

    private static let limit = 10_000

    private func put(_ key: String, _ value: [UInt8] = []) async throws {
        _ = try await store.inner.write([.put(key: key, value: value, sessionLease: nil)], if: nil)
    }

    private func put(_ key: TeamKey, _ value: any Encodable) async throws {
        try await put(key.text, try TeamCoding.bytes(of: value, for: key))
    }

    /// Writes a team of three hosts, each with an endpoint and a phone, and a claim.
    private func putTeam() async throws {
        let authority = TeamAuthority(store: store.inner)
        try await authority.create(Values.team)
        for (number, name) in ["lab1", "lab2", "lab3"].enumerated() {
            let (host, shop) = (try Values.host(name), try Values.endpoint("shop"))
            try await authority.add(try Values.member(name))
            try await put(.host(host), Values.teamHost(name))
            try await put(.endpoint(shop.id, on: host), TeamEndpoint(shop))
            try await put(.device(try Values.udid(number), .usb, on: host), Values.device(number))
        }
        try await put(.claim(.device(try Values.udid(2))), Values.claim("lab2", of: "shop.lab2"))
    }

    private func withWatcher(logger: Logger = Values.logger, _ body: @Sendable (TeamWatcher) async throws -> Void)
        async throws
    {
        let watcher = TeamWatcher(
            host: try Values.host("lab1"),
            team: Values.team,
            store: store,
            members: try await TeamMembers(in: scratch.path, logger: Values.logger),
            clock: clock,
            logger: logger
        )
        try await withRunning([watcher]) { try await body(watcher) }
    }

    @Test(
        arguments: ["host/lab3x", "ep/lab3/x", "dev/lab3/x", "claim/x"],
        [TeamStoreError.tooLarge(bytes: 1), TestStore.unreachable]
    )
    func `a part that cannot be listed hides no other`(name: String, error: TeamStoreError) async throws {
        try await putTeam()
        var listing = TeamListing(store)
        let all = try await listing.list().entries.map(\.key)
        #expect(listing.missing.isEmpty && all.count == 1 + 4 * 3 + 1)
        let key = TeamKey.root + name
        try await put(key, Array(repeating: 0, count: Self.limit))
        store.limitLists(to: Self.limit, with: error)

        let listed = try await listing.list().entries.map(\.key)

        #expect(listing.missing.count == 1 && listing.missing.allSatisfy { key.hasPrefix($0) })
        #expect(Set(listed) == Set(all.filter { key in !listing.missing.contains { key.hasPrefix($0) } }))
    }

    @Test(arguments: [[TeamKey.endpoints], [TeamKey.endpoints, TeamKey.endpoints + "lab3/"], [TeamKey.claims]])
    func `a registry that is slow for a moment hides no entry`(prefixes: [String]) async throws {
        try await putTeam()
        var listing = TeamListing(store)
        let all = try await listing.list().entries
        for prefix in prefixes { store.failLists(of: prefix, times: 2) }

        let listed = try await listing.list().entries

        #expect(listing.missing.isEmpty && Set(listed) == Set(all))
    }

    @Test func `without the members there is no list`() async throws {
        try await putTeam()
        var listing = TeamListing(store)
        store.limitLists(to: 0)
        await #expect(throws: TeamStoreError.tooLarge(bytes: 0)) { try await listing.list() }
        store.fail(with: TestStore.unreachable)
        await #expect(throws: TestStore.unreachable) { try await listing.list() }
    }

    @Test func `the changes after a list begin with those after the members were listed`() async throws {
        try await putTeam()
        var listing = TeamListing(ChangingStore(store.inner, before: TeamKey.members) { try await rejoin($0) })

        let list = try await listing.list()

        #expect(list.revision == store.inner.revision)
        let lab2 = try Values.member("lab2", key: 9)
        let value = list.entries.first { $0.key == TeamKey.member(lab2.name).text }?.value
        #expect(value.flatMap { TeamCoding.value(TeamMember.self, from: $0) } == lab2)
    }

    @Test(arguments: [TeamKey.members, TeamKey.meta.text, TeamKey.hosts, TeamKey.claims])
    func `a host that joins again while the registry is listed is accepted with its new key`(prefix: String)
        async throws
    {
        try await putTeam()
        let changing = ChangingStore(store.inner, before: prefix) { try await rejoin($0) }
        let members = try await TeamMembers(in: scratch.path, logger: Values.logger)
        let watcher = TeamWatcher(
            host: try Values.host("lab1"),
            team: Values.team,
            store: changing,
            members: members,
            clock: clock,
            logger: Values.logger
        )
        try await withRunning([watcher]) {
            var events = watcher.events.makeAsyncIterator()
            while let event = await events.next(), event != .stale(since: nil) {}
            let last = try Values.member("lab4")
            try await TeamAuthority(store: store.inner).add(last)
            while let event = await events.next(), event != .member(last) {}

            let lab2 = try Values.member("lab2", key: 9)
            #expect(members.accepts(lab2.name, key: lab2.key))
            #expect(!members.removedKeys.contains(lab2.key))
        }
    }

    @Test func `a claim that ended while the registry was listed is not reported again`() async throws {
        try await putTeam()
        let target = LeaseTarget.device(try Values.udid(2))
        let changing = ChangingStore(store.inner, before: TeamKey.claims) { store in
            for claim in [try Values.claim("lab3", of: "shop.lab3"), try Values.claim("lab1", of: "shop.lab1")] {
                let key = TeamKey.claim(target)
                let value = try TeamCoding.bytes(of: claim, for: key)
                _ = try await store.write([.put(key: key.text, value: value, sessionLease: nil)], if: nil)
            }
        }
        let watcher = TeamWatcher(
            host: try Values.host("lab1"),
            team: Values.team,
            store: changing,
            members: try await TeamMembers(in: scratch.path, logger: Values.logger),
            clock: clock,
            logger: Values.logger
        )
        try await withRunning([watcher]) {
            var events = watcher.events.makeAsyncIterator()
            while let event = await events.next(), event != .stale(since: nil) {}
            #expect(watcher.snapshot.claims[target]?.host.description == "lab1")
            let last = try Values.member("lab4")
            try await TeamAuthority(store: store.inner).add(last)

            while let event = await events.next(), event != .member(last) {
                if case .claim(target, let claim) = event { Issue.record("the claim of \(claim.host) came again") }
            }
        }
    }

    /// Removes lab2, and adds it with a new key.
    private func rejoin(_ store: any TeamStore) async throws {
        let authority = TeamAuthority(store: store)
        let lab2 = try Values.member("lab2", key: 9)
        try await authority.remove(lab2.name)
        try await authority.add(lab2)
    }

    @Test func `the prefix of a part that cannot be listed is logged once`() async throws {
        try await putTeam()
        try await put("\(TeamKey.root)ep/lab3/x", Array(repeating: 0, count: Self.limit))
        store.limitLists(to: Self.limit)
        let lines = LogMessages()
        try await withWatcher(logger: Logger(label: "test") { _ in lines }) { watcher in
            var events = watcher.events.makeAsyncIterator()
            while let event = await events.next(), event != .stale(since: nil) {}
            #expect(watcher.snapshot.hosts.count == 2 && watcher.snapshot.claims.count == 1)
            // The watcher may not watch the registry yet. The failure then ends its next call.
            store.fail(with: TestStore.unreachable)
            _ = await events.next()
            store.fail(with: nil)
            await clock.waitForSleepers()
            clock.advance(by: .seconds(2))
            while let event = await events.next(), event != .stale(since: nil) {}
        }
        #expect(lines.all.filter { $0.contains("/patchbay/v1/ep/lab3/") }.count == 1)
    }

    @Test func `a part that could not be listed appears with a change after 30 seconds`() async throws {
        try await putTeam()
        try await put("\(TeamKey.root)ep/lab3/x", Array(repeating: 0, count: Self.limit))
        store.limitLists(to: Self.limit - 1)
        let shop = try Values.id("shop.lab3")
        try await withWatcher { watcher in
            var events = watcher.events.makeAsyncIterator()
            while let event = await events.next(), event != .stale(since: nil) {
                if case .endpoint(let endpoint) = event { #expect(endpoint.id != shop) }
            }
            store.limitLists(to: .max)
            clock.advance(by: .seconds(30))
            try await put("\(TeamKey.root)ep/lab2/x")
            await clock.waitForSleepers()
            clock.advance(by: .seconds(2))

            while let event = await events.next() {
                if case .endpoint(let endpoint) = event, endpoint.id == shop { return }
            }
        }
    }

    @Test func `claims that could not be listed appear when others are deleted`() async throws {
        try await putTeam()
        let junk = "\(TeamKey.root)claim/x"
        try await put(junk, Array(repeating: 0, count: Self.limit))
        store.limitLists(to: Self.limit)
        try await withWatcher { watcher in
            var events = watcher.events.makeAsyncIterator()
            while let event = await events.next(), event != .stale(since: nil) {}
            #expect(watcher.snapshot.claims.isEmpty)

            _ = try await store.inner.write([.delete(key: junk)], if: nil)
            await clock.waitForSleepers()
            clock.advance(by: .seconds(2))

            guard case .claim? = await events.next() else { return #expect(Bool(false), "no claim") }
            #expect(watcher.staleSince == nil)
        }
    }

    @Test(arguments: [TeamStoreError.tooLarge(bytes: 1), TestStore.unreachable])
    func `a removal deletes claims that cannot be listed`(error: TeamStoreError) async throws {
        try await putTeam()
        try await put("\(TeamKey.root)claim/x", Array(repeating: 0, count: Self.limit))
        store.limitLists(to: Self.limit, with: error)

        try await TeamAuthority(store: store).removeClaims(of: try Values.host("lab3"))

        #expect(try await store.inner.list(TeamKey.claims).entries.isEmpty)
    }

    @Test func `a removal while the registry is slow for a moment deletes no claims of others`() async throws {
        try await putTeam()
        store.failLists(of: TeamKey.claims, times: 2)

        try await TeamAuthority(store: store).removeClaims(of: try Values.host("lab3"))

        #expect(try await store.inner.list(TeamKey.claims).entries.count == 1)
    }

    @Test func `a removal without an answer deletes no claims of others`() async throws {
        try await putTeam()
        store.limitLists(to: 0, with: TestStore.unreachable)

        await #expect(throws: TeamError.store(TestStore.unreachable)) {
            try await TeamAuthority(store: store).removeClaims(of: try Values.host("lab3"))
        }

        #expect(try await store.inner.list(TeamKey.claims).entries.count == 1)
    }
}

/// Keeps the metadata of log lines.
private final class LogMessages: LogHandler {
    private let lines = Mutex<[String]>([])

    var metadata: Logger.Metadata {
        get { [:] }
        set {}
    }
    var logLevel: Logger.Level {
        get { .notice }
        set {}
    }
    var all: [String] { lines.withLock { $0 } }

    subscript(metadataKey key: String) -> Logger.Metadata.Value? {
        get { nil }
        set {}
    }

    func log(event: LogEvent) { lines.withLock { $0.append("\(event.message) \(event.metadata ?? [:])") } }
}

/// A store that changes once, before the first list of a prefix.
private final class ChangingStore: TeamStore {
    private let inner: InMemoryTeamStore
    private let prefix: String
    private let change: @Sendable (any TeamStore) async throws -> Void
    private let isChanged = Atomic(false)

    init(
        _ inner: InMemoryTeamStore,
        before prefix: String,
        _ change: @escaping @Sendable (any TeamStore) async throws -> Void
    ) {
        self.inner = inner
        self.prefix = prefix
        self.change = change
    }

    func list(_ prefix: String) async throws(TeamStoreError) -> TeamStoreList {
        if prefix == self.prefix, !isChanged.exchange(true, ordering: .relaxed) {
            do { try await change(inner) } catch { throw .failed(reason: "\(error)") }
        }
        return try await inner.list(prefix)
    }

    func changes(of prefix: String, after revision: Int64) -> AsyncThrowingStream<TeamStoreChanges, any Error> {
        inner.changes(of: prefix, after: revision)
    }

    func write(_ writes: [TeamStoreWrite], if condition: TeamStoreCondition?) async throws(TeamStoreError) -> Bool {
        try await inner.write(writes, if: condition)
    }

    func grantSessionLease(timeToLive: Duration) async throws(TeamStoreError) -> SessionLease.ID {
        try await inner.grantSessionLease(timeToLive: timeToLive)
    }

    func renewSessionLease(_ id: SessionLease.ID) async throws(TeamStoreError) { try await inner.renewSessionLease(id) }

    func revokeSessionLease(_ id: SessionLease.ID) async throws(TeamStoreError) {
        try await inner.revokeSessionLease(id)
    }
}
