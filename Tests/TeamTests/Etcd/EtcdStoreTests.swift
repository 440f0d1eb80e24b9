@testable import Team
import TestSupport
import Testing

/// The store on a real etcd.
@Suite(.timeLimit(.minutes(3)), .scratchFolder) struct EtcdStoreTests {
    private let scratch = ScratchFolder.current

    @Test(.needs(.etcd)) func `a list has the keys of its prefix in order`() async throws {
        let store = try await EtcdCluster(in: scratch).store()
        for key in ["/b/2", "/b/1", "/a", "/b0", "/c"] { try await store.put(key, key.uppercased()) }
        let list = try await store.list("/b/")
        #expect(list.entries.map(\.text) == ["/b/1=/B/1", "/b/2=/B/2"])
        #expect(try await store.list("").entries.count == 5)
        try await store.put("/d")
        #expect(try await store.list("/b/").revision == list.revision + 1)
    }

    @Test(.needs(.etcd)) func `a list of 10,000 keys is complete`() async throws {
        let store = try await EtcdCluster(in: scratch).store()
        let value = Array(repeating: UInt8(ascii: "x"), count: 330)
        for start in stride(from: 0, to: 10_000, by: TeamStoreWrite.limit) {
            let keys = start..<start + TeamStoreWrite.limit
            #expect(try await store.write(keys.map { .put(key: "/k/\($0)", value: value, sessionLease: nil) }, if: nil))
        }
        #expect(try await store.list("/k/").entries.filter { $0.value == value }.count == 10_000)
    }

    @Test(.needs(.etcd)) func `a transaction has at most 100 writes and is one revision`() async throws {
        let store = try await EtcdCluster(in: scratch).store()
        let writes = (0...TeamStoreWrite.limit).map { TeamStoreWrite.put(key: "/\($0)", value: [], sessionLease: nil) }
        let before = try await store.list("/").revision
        await #expect(throws: TeamStoreError.self) { try await store.write(writes, if: nil) }
        #expect(try await store.write(writes.dropLast(), if: nil))
        let list = try await store.list("/")
        #expect(list.entries.count == 100)
        #expect(list.revision == before + 1)
    }

    @Test(.needs(.etcd)) func `a write with a false condition changes nothing`() async throws {
        let store = try await EtcdCluster(in: scratch).store()
        let put = [TeamStoreWrite.put(key: "/a", value: [1], sessionLease: nil)]
        #expect(try await store.write(put, if: .absent(key: "/a")))
        #expect(try await !store.write(put, if: .absent(key: "/a")))
        #expect(try await !store.write([.delete(key: "/a")], if: .equals(key: "/a", value: [2])))
        #expect(try await !store.write([.delete(key: "/a")], if: .equals(key: "/b", value: [])))
        #expect(try await store.write([.delete(key: "/a")], if: .equals(key: "/a", value: [1])))
        #expect(try await store.list("/").entries.isEmpty)
    }

    @Test(.needs(.etcd)) func `changes have every revision of the prefix in order, also those before the call`()
        async throws
    {
        let store = try await EtcdCluster(in: scratch).store()
        let start = try await store.list("/a/").revision
        try await store.put("/a/1", "x")
        try await store.put("/b", "y")
        _ = try await store.write([.delete(key: "/a/1"), .put(key: "/a/2", value: [], sessionLease: nil)], if: nil)
        var changes = store.changes(of: "/a/", after: start).makeAsyncIterator()
        let first = try #require(await changes.next())
        #expect(first.revision == start + 1)
        let second = try #require(await changes.next())
        #expect(second.changes == [.delete(key: "/a/1"), .put(TeamStoreEntry(key: "/a/2", value: []))])
        _ = try await store.write([.deleteAll(prefix: "/a/")], if: nil)
        #expect(try await changes.next()?.changes == [.delete(key: "/a/2")])
    }

    @Test(.needs(.etcd)) func `entries vanish in one revision when their lease ends`() async throws {
        let store = try await EtcdCluster(in: scratch).store()
        let start = try await store.list("/").revision
        // Long enough for a test process that is paused before the put.
        let lease = try await store.grantSessionLease(timeToLive: .seconds(10))
        try await store.renewSessionLease(lease)
        let puts = ["/a", "/b"].map { TeamStoreWrite.put(key: $0, value: [], sessionLease: lease) }
        #expect(try await store.write(puts, if: nil))
        var changes = store.changes(of: "/", after: start).makeAsyncIterator()
        #expect(try await changes.next()?.changes.count == 2)
        let end = try #require(await changes.next())
        #expect(Set(end.changes) == [.delete(key: "/a"), .delete(key: "/b")])
        await #expect(throws: TeamStoreError.sessionLeaseEnded) { try await store.renewSessionLease(lease) }
        await #expect(throws: TeamStoreError.sessionLeaseEnded) { try await store.put("/c", sessionLease: lease) }
        try await store.revokeSessionLease(lease)
    }

    @Test(.needs(.etcd)) func `a revoked lease takes its entries along`() async throws {
        let store = try await EtcdCluster(in: scratch).store()
        let lease = try await store.grantSessionLease(timeToLive: .seconds(60))
        try await store.put("/a", sessionLease: lease)
        try await store.revokeSessionLease(lease)
        #expect(try await store.list("/").entries.isEmpty)
    }

    @Test(.needs(.etcd)) func `changes after a compacted revision need a new list`() async throws {
        let cluster = try await EtcdCluster(in: scratch)
        let store = try await cluster.store()
        let start = try await store.list("/").revision
        for _ in 0..<10 { try await store.put("/a") }
        let list = try await store.list("/")
        try await cluster.etcdctl("compact", "\(list.revision)")
        await #expect(throws: TeamStoreError.compacted) {
            for try await _ in store.changes(of: "/", after: start) {}
        }
        try await store.put("/b")
        var changes = store.changes(of: "/", after: list.revision).makeAsyncIterator()
        #expect(try await changes.next()?.revision == list.revision + 1)
    }

    /// Each contender has a client of its own, like a broker.
    @Test(.needs(.etcd)) func `of ten that create the same key exactly one succeeds`() async throws {
        let cluster = try await EtcdCluster(in: scratch)
        var stores: [EtcdStore] = []
        for _ in 0..<10 { stores.append(try await cluster.store()) }
        let winners = try await withThrowingTaskGroup(of: [Int].self) { group in
            for (contender, store) in stores.enumerated() {
                group.addTask {
                    var won: [Int] = []
                    for round in 0..<1_000 {
                        let put = TeamStoreWrite.put(key: "/\(round)", value: [UInt8(contender)], sessionLease: nil)
                        if try await store.write([put], if: .absent(key: "/\(round)")) { won.append(round) }
                    }
                    return won
                }
            }
            return try await group.reduce(into: []) { $0 += $1 }
        }
        #expect(winners.sorted() == Array(0..<1_000))
    }

    /// The end of the reader is a callback of the connection that the client then closes.
    @Test(.needs(.etcd)) func `a client ends with the last reader of its changes`() async throws {
        let cluster = try await EtcdCluster(in: scratch)
        let writer = try await cluster.store()
        let start = try await writer.list("/").revision
        try await writer.put("/a")
        for _ in 0..<20 {
            weak var reference: EtcdClient?
            do {
                let client = try await cluster.client()
                reference = client
                for try await _ in EtcdStore(client).changes(of: "/", after: start) { break }
            }
            try await eventually("the client ends") { reference == nil }
        }
    }

    @Test(.needs(.etcd)) func `a closed client makes no calls and ends its watches`() async throws {
        let client = try await EtcdCluster(in: scratch).client()
        let store = EtcdStore(client)
        let changes = store.changes(of: "/", after: try await store.list("/").revision)
        client.close()
        await #expect(throws: TeamStoreError.self) { for try await _ in changes {} }
        await #expect(throws: TeamStoreError.self) { try await store.list("/") }
    }
}
