import AccessControl
import FoundationEssentials
import Logging
import Model
import Synchronization
import TestSupport
import Testing

@testable import Team

@Suite(.timeLimit(.minutes(1)), .scratchFolder) struct TeamWatcherTests {
    private let scratch = ScratchFolder.current
    private let clock = ManualClock()
    private let store: TestStore

    init() { store = TestStore(InMemoryTeamStore(clock: clock)) }

    private struct Running {
        let watcher: TeamWatcher
        let members: TeamMembers

        /// Returns the events until one meets the condition, with that one.
        func events(until isLast: (TeamEvent) -> Bool) async throws -> [TeamEvent] {
            var events: [TeamEvent] = []
            for await event in watcher.events {
                events.append(event)
                if isLast(event) { return events }
            }
            throw TestSupportError("the watcher ended without the wanted event")
        }
    }

    /// Runs the watcher of lab1 in a team with lab2.
    private func withWatcher(_ body: @Sendable (Running) async throws -> Void) async throws {
        let authority = TeamAuthority(store: store.inner)
        try await authority.create(Values.team)
        for name in ["lab1", "lab2"] { try await authority.add(try Values.member(name)) }
        let members = try await TeamMembers(in: scratch.path, logger: Values.logger)
        let watcher = TeamWatcher(
            host: try Values.host("lab1"),
            team: Values.team,
            store: store,
            members: members,
            clock: clock,
            now: { Values.date },
            logger: Values.logger
        )
        try await withRunning([watcher]) { try await body(Running(watcher: watcher, members: members)) }
    }

    private func put(_ id: String, state: Endpoint.State = .online) async throws {
        let endpoint = try Values.endpoint(id, state: state)
        let key = TeamKey.endpoint(endpoint.id, on: try Values.host("lab2"))
        let value = try TeamCoding.bytes(of: TeamEndpoint(endpoint), for: key)
        _ = try await store.inner.write([.put(key: key.text, value: value, sessionLease: nil)], if: nil)
    }

    private func delete(_ id: String) async throws {
        let key = TeamKey.endpoint(try Values.id(id), on: try Values.host("lab2"))
        _ = try await store.inner.write([.delete(key: key.text)], if: nil)
    }

    private static func isCurrent(_ event: TeamEvent) -> Bool { event == .stale(since: nil) }

    private static func isEndpoint(_ id: String) -> (TeamEvent) -> Bool {
        { event in if case .endpoint(let endpoint) = event { endpoint.id.text == id } else { false } }
    }

    @Test func `the first list ends with the mark that all is current`() async throws {
        try await put("shop")
        try await withWatcher { running in
            let events = try await running.events(until: Self.isCurrent)

            #expect(events.count == 4)
            #expect(running.watcher.staleSince == nil)
            #expect(running.watcher.snapshot.members.count == 2)
        }
    }

    @Test func `changes follow the list`() async throws {
        try await withWatcher { running in
            _ = try await running.events(until: Self.isCurrent)

            try await put("shop")

            _ = try await running.events(until: Self.isEndpoint("shop.lab2"))
        }
    }

    @Test func `a lost connection marks the entries as stale, and nothing is missed afterwards`() async throws {
        try await put("kept")
        try await put("gone")
        try await withWatcher { running in
            _ = try await running.events(until: Self.isCurrent)

            store.fail(with: TestStore.unreachable)
            #expect(try await running.events { _ in true } == [.stale(since: Values.date)])
            #expect(running.watcher.staleSince == Values.date)
            try await delete("gone")
            try await put("new")
            await clock.waitForSleepers()
            store.fail(with: nil)
            clock.advance(by: .seconds(2))

            let events = try await running.events(until: Self.isCurrent)
            #expect(events.first == .endpointRemoved(try Values.id("gone.lab2")))
            #expect(events.count == 3 && Self.isEndpoint("new.lab2")(events[1]))
            #expect(running.watcher.staleSince == nil)
        }
    }

    @Test func `an unreachable registry is asked again after 0.1 to 2 seconds`() async throws {
        try await withWatcher { running in
            _ = try await running.events(until: Self.isCurrent)
            store.fail(with: TestStore.unreachable)
            for pause in [100, 200, 400, 800, 1_600, 2_000, 2_000] {
                await clock.waitForSleepers()
                let failures = store.record.failures
                clock.advance(by: .milliseconds(pause - 1))
                #expect(store.record.failures == failures)
                clock.advance(by: .milliseconds(1))
                try await eventually("the registry is asked") { store.record.failures > failures }
            }
        }
    }

    @Test func `after a compaction the registry is listed again, and nothing is missed`() async throws {
        try await withWatcher { running in
            _ = try await running.events(until: Self.isCurrent)
            store.fail(with: TestStore.unreachable)
            _ = try await running.events { _ in true }
            await clock.waitForSleepers()
            try await put("one")
            store.inner.compact()
            store.fail(with: nil)
            clock.advance(by: .seconds(2))

            let events = try await running.events(until: Self.isCurrent)

            #expect(events.contains(where: Self.isEndpoint("one.lab2")))
        }
    }

    @Test func `a compaction between list and stream marks nothing as stale`() async throws {
        let compacting = CompactingStore(store.inner)
        try await TeamAuthority(store: store.inner).create(Values.team)
        let watcher = TeamWatcher(
            host: try Values.host("lab1"),
            team: Values.team,
            store: compacting,
            members: try await TeamMembers(in: scratch.path, logger: Values.logger),
            clock: RecordingClock(isImmediate: true),
            logger: Values.logger
        )
        try await withRunning([watcher]) {
            var events = watcher.events.makeAsyncIterator()
            #expect(await events.next() == .stale(since: nil))
            try await TeamAuthority(store: store.inner).add(try Values.member("lab3"))

            #expect(await events.next() == .member(try Values.member("lab3")))
        }
    }

    @Test func `an entry that cannot be read is skipped and known`() async throws {
        try await withWatcher { running in
            _ = try await running.events(until: Self.isCurrent)
            let key = TeamKey.endpoint(try Values.id("broken"), on: try Values.host("lab2"))
            _ = try await store.inner.write([.put(key: key.text, value: [0], sessionLease: nil)], if: nil)
            try await put("shop")

            let events = try await running.events { _ in true }

            #expect(events.contains(where: Self.isEndpoint("shop.lab2")))
            #expect(running.watcher.snapshot.unreadableKeys == [key])
        }
    }

    @Test func `ignored entries are logged once in a run`() async throws {
        let lines = LogLines()
        let authority = TeamAuthority(store: store.inner)
        try await authority.create(Values.team)
        try await authority.add(try Values.member("lab2"))
        let watcher = TeamWatcher(
            host: try Values.host("lab1"),
            team: Values.team,
            store: store,
            members: try await TeamMembers(in: scratch.path, logger: Values.logger),
            clock: clock,
            logger: Logger(label: "test") { _ in lines }
        )
        try await withRunning([watcher]) {
            for number in 0..<3 {
                let key = TeamKey.endpoint(try Values.id("broken-\(number)"), on: try Values.host("lab2"))
                _ = try await store.inner.write([.put(key: key.text, value: [0], sessionLease: nil)], if: nil)
            }
            try await eventually("three are counted") { watcher.snapshot.unreadableKeys.count == 3 }
        }
        #expect(lines.count == 1)
    }

    @Test func `the registry of another team is not used`() async throws {
        let authority = TeamAuthority(store: store.inner)
        try await authority.create(SanitizedText("other"))
        try await authority.add(try Values.member("lab9"))
        let members = try await TeamMembers(in: scratch.path, logger: Values.logger)
        await members.replace(with: [try Values.member("lab2")])
        let watcher = TeamWatcher(
            host: try Values.host("lab1"),
            team: Values.team,
            store: store,
            members: members,
            clock: clock,
            logger: Values.logger
        )
        try await withRunning([watcher]) {
            await clock.waitForSleepers()

            let saved = try Values.member("lab2")
            #expect(members.all == [saved])
            #expect(watcher.staleSince != nil)
        }
    }

    @Test func `a removed member is refused before its removal is reported`() async throws {
        try await withWatcher { running in
            _ = try await running.events(until: Self.isCurrent)
            let lab2 = try Values.member("lab2")
            #expect(running.members.accepts(lab2.name, key: lab2.key))
            var removals = running.members.removals().makeAsyncIterator()

            try await TeamAuthority(store: store.inner).remove(lab2.name)

            #expect(await removals.next() == lab2)
            #expect(!running.members.accepts(lab2.name, key: lab2.key))
            #expect(try await running.events { _ in true } == [.memberRemoved(lab2.name)])
        }
    }

    @Test func `lookups know hosts, phones and claims`() async throws {
        try await withWatcher { running in
            _ = try await running.events(until: Self.isCurrent)
            let (lab2, udid) = (try Values.host("lab2"), try Values.udid(1))
            let claim = try Values.claim("lab2", of: "shop.lab2", device: udid)
            let entries: [(TeamKey, any Encodable)] = [
                (.host(lab2), try Values.teamHost("lab2")), (.device(udid, .usb, on: lab2), try Values.device(1)),
                (.claim(.device(udid)), claim),
            ]
            for (key, value) in entries {
                let bytes = try TeamCoding.bytes(of: value, for: key)
                _ = try await store.inner.write([.put(key: key.text, value: bytes, sessionLease: nil)], if: nil)
            }
            _ = try await running.events { if case .claim = $0 { true } else { false } }

            #expect(running.watcher.host(lab2)?.addresses == ["10.0.0.1:7284"])
            #expect(running.watcher.routes(to: udid).map(\.host.name) == [lab2])
            #expect(running.watcher.claim(of: .device(udid)) == claim)
        }
    }
}

/// Counts log lines.
private final class LogLines: LogHandler {
    private let lines = Mutex(0)

    var metadata: Logger.Metadata {
        get { [:] }
        set {}
    }
    var logLevel: Logger.Level {
        get { .notice }
        set {}
    }
    var count: Int { lines.withLock { $0 } }

    subscript(metadataKey key: String) -> Logger.Metadata.Value? {
        get { nil }
        set {}
    }

    func log(event: LogEvent) { lines.withLock { $0 += 1 } }
}

/// A store whose history is compacted once, between the first list and its stream.
private final class CompactingStore: TeamStore {
    private let inner: InMemoryTeamStore
    private let isCompacted = Mutex(true)

    init(_ inner: InMemoryTeamStore) { self.inner = inner }

    func list(_ prefix: String) async throws(TeamStoreError) -> TeamStoreList { try await inner.list(prefix) }

    func changes(of prefix: String, after revision: Int64) -> AsyncThrowingStream<TeamStoreChanges, any Error> {
        let isCompacted = isCompacted.withLock { isCompacted in
            defer { isCompacted = false }
            return isCompacted
        }
        return inner.changes(of: prefix, after: isCompacted ? 0 : revision)
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
