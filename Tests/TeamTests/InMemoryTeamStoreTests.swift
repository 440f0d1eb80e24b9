import TestSupport
import Testing

@testable import Team

@Suite(.timeLimit(.minutes(1))) struct InMemoryTeamStoreTests {
    private let clock = ManualClock()
    private let store: InMemoryTeamStore

    init() { store = InMemoryTeamStore(clock: clock) }

    private func put(_ key: String, _ value: UInt8, lease: SessionLease.ID? = nil) async throws {
        #expect(try await store.write([.put(key: key, value: [value], sessionLease: lease)], if: nil))
    }

    private func keys(_ prefix: String = "") async throws -> [String] {
        try await store.list(prefix).entries.map(\.key)
    }

    @Test func `a list has the entries below a prefix, sorted, and the revision`() async throws {
        try await put("b/2", 2)
        try await put("b/1", 1)
        try await put("a", 0)

        let list = try await store.list("b/")

        #expect(list.entries == [TeamStoreEntry(key: "b/1", value: [1]), TeamStoreEntry(key: "b/2", value: [2])])
        #expect(list.revision == store.revision)
    }

    @Test func `the writes of one call share a revision`() async throws {
        let before = store.revision

        _ = try await store.write(
            [.put(key: "a", value: [1], sessionLease: nil), .put(key: "b", value: [2], sessionLease: nil)],
            if: nil
        )

        #expect(store.revision == before + 1)
    }

    @Test func `a false condition writes nothing`() async throws {
        try await put("a", 1)
        let revision = store.revision
        let write = TeamStoreWrite.put(key: "a", value: [2], sessionLease: nil)

        #expect(try await store.write([write], if: .absent(key: "a")) == false)
        #expect(try await store.write([write], if: .equals(key: "a", value: [3])) == false)
        #expect(store.revision == revision)
        #expect(try await store.write([write], if: .equals(key: "a", value: [1])))
        #expect(try await store.list("a").entries.first?.value == [2])
    }

    @Test func `more than 100 writes in one call are refused`() async throws {
        let writes = (0...TeamStoreWrite.limit).map { TeamStoreWrite.put(key: "\($0)", value: [], sessionLease: nil) }

        await #expect(throws: TeamStoreError.self) { try await store.write(writes, if: nil) }
        #expect(try await store.write(Array(writes.dropLast()), if: nil))
    }

    @Test func `a lease deletes its entries in one revision when it ends`() async throws {
        let lease = try await store.grantSessionLease(timeToLive: .seconds(10))
        try await put("a", 1, lease: lease)
        try await put("b", 2, lease: lease)
        try await put("c", 3)
        let revision = store.revision

        clock.advance(by: .seconds(10))

        #expect(try await keys() == ["c"])
        #expect(store.revision == revision + 1)
        await #expect(throws: TeamStoreError.sessionLeaseEnded) { try await store.renewSessionLease(lease) }
        await #expect(throws: TeamStoreError.sessionLeaseEnded) { try await put("a", 1, lease: lease) }
    }

    @Test func `a renewal keeps a lease for its whole time`() async throws {
        let lease = try await store.grantSessionLease(timeToLive: .seconds(10))
        try await put("a", 1, lease: lease)
        clock.advance(by: .seconds(9))
        try await store.renewSessionLease(lease)

        clock.advance(by: .seconds(9))

        #expect(try await keys() == ["a"])
    }

    @Test func `an entry with a new lease survives the end of its lease before`() async throws {
        let old = try await store.grantSessionLease(timeToLive: .seconds(10))
        let new = try await store.grantSessionLease(timeToLive: .seconds(20))
        try await put("a", 1, lease: old)
        try await put("b", 1, lease: old)
        try await put("a", 1, lease: new)

        clock.advance(by: .seconds(10))

        #expect(try await keys() == ["a"])
    }

    @Test func `a revoked lease deletes its entries, and can be revoked again`() async throws {
        let lease = try await store.grantSessionLease(timeToLive: .seconds(10))
        try await put("a", 1, lease: lease)

        try await store.revokeSessionLease(lease)
        try await store.revokeSessionLease(lease)

        #expect(try await keys() == [])
    }

    @Test func `a watcher gets the changes after its revision, those of the past included`() async throws {
        try await put("a/1", 1)
        let revision = store.revision
        try await put("a/2", 2)
        try await put("b", 3)
        var changes = store.changes(of: "a/", after: revision).makeAsyncIterator()
        _ = try await store.write([.deleteAll(prefix: "a/")], if: nil)

        let first = try await changes.next()
        let second = try await changes.next()

        #expect(first?.changes == [.put(TeamStoreEntry(key: "a/2", value: [2]))])
        #expect(first?.revision == revision + 1)
        #expect(second?.changes == [.delete(key: "a/1"), .delete(key: "a/2")])
        #expect(second?.revision == store.revision)
    }

    @Test func `a watcher of a compacted revision is told so`() async throws {
        try await put("a", 1)
        let revision = store.revision
        try await put("a", 2)
        store.compact()

        await #expect(throws: TeamStoreError.compacted) {
            for try await _ in store.changes(of: "a", after: revision) {}
        }
        var current = store.changes(of: "a", after: store.revision).makeAsyncIterator()
        try await put("a", 3)
        #expect(try await current.next()?.changes.count == 1)
    }

    @Test func `an unreachable store fails calls and streams, and its leases end meanwhile`() async throws {
        let lease = try await store.grantSessionLease(timeToLive: .seconds(10))
        try await put("a", 1, lease: lease)
        var changes = store.changes(of: "a", after: store.revision).makeAsyncIterator()

        store.isReachable = false
        clock.advance(by: .seconds(10))

        await #expect(throws: TeamStoreError.self) { try await store.list("a") }
        await #expect(throws: TeamStoreError.self) { try await changes.next() }
        store.isReachable = true
        #expect(try await keys() == [])
    }

    @Test func `a long history is compacted by itself`() async throws {
        let revision = store.revision
        for number in 0...InMemoryTeamStore.historyLimit { try await put("a", UInt8(truncatingIfNeeded: number)) }

        await #expect(throws: TeamStoreError.compacted) {
            for try await _ in store.changes(of: "a", after: revision) {}
        }
    }
}
