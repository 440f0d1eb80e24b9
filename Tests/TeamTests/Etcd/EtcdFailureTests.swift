@testable import Team
import TestSupport
import Testing

/// The store while servers fail.
@Suite(.timeLimit(.minutes(3)), .scratchFolder) struct EtcdFailureTests {
    private let scratch = ScratchFolder.current

    /// Waits until a call succeeds again.
    private func recovered(_ what: String, _ call: () async throws(TeamStoreError) -> Void) async throws {
        try await eventually(what) {
            do {
                try await call()
                return true
            } catch TeamStoreError.unreachable { return false }
        }
    }

    private func isUnreachable(_ error: any Error) -> Bool {
        if case TeamStoreError.unreachable = error { true } else { false }
    }

    @Test(.needs(.etcd)) func `writes continue after the leader is killed, and leases live on`() async throws {
        let cluster = try await EtcdCluster(servers: 3, in: scratch)
        let store = try await cluster.store()
        let lease = try await store.grantSessionLease(timeToLive: .seconds(60))
        try await store.put("/a", "before", sessionLease: lease)
        let start = try await store.list("/").revision
        try await cluster.leader().kill()
        try await recovered("a write") { () async throws(TeamStoreError) in try await store.put("/b", "after") }
        try await recovered("a renewal") { () async throws(TeamStoreError) in try await store.renewSessionLease(lease) }
        #expect(try await store.list("/").entries.map(\.text) == ["/a=before", "/b=after"])
        var changes = store.changes(of: "/", after: start).makeAsyncIterator()
        #expect(try await changes.next()?.changes == [.put(TeamStoreEntry(key: "/b", value: Array("after".utf8)))])
    }

    @Test(.needs(.etcd)) func `without a quorum the store is unreachable, and returns with it`() async throws {
        let cluster = try await EtcdCluster(servers: 3, in: scratch)
        let store = try await cluster.store()
        try await store.put("/a")
        for server in cluster.servers.dropFirst() { try await server.kill() }
        await #expect { try await store.put("/b") } throws: { isUnreachable($0) }
        await #expect { try await store.list("/") } throws: { isUnreachable($0) }
        await #expect {
            for try await _ in store.changes(of: "/", after: 1) {}
        } throws: { isUnreachable($0) }
        try await cluster.restart(cluster.servers[1])
        try await recovered("a list") { () async throws(TeamStoreError) in _ = try await store.list("/") }
        try await recovered("a write") { () async throws(TeamStoreError) in try await store.put("/c") }
    }

    @Test(.needs(.etcd)) func `a watch ends when its server hangs, and the next server continues it`() async throws {
        let cluster = try await EtcdCluster(servers: 3, in: scratch)
        let store = try await cluster.store()
        let writer = try await cluster.store(endpoints: Array(cluster.endpoints.dropFirst()))
        try await store.put("/a")
        let start = try await store.list("/").revision
        var changes = store.changes(of: "/", after: start).makeAsyncIterator()
        try await store.put("/b")
        #expect(try await changes.next()?.revision == start + 1)
        try cluster.servers[0].freeze()
        await #expect { _ = try await changes.next() } throws: { isUnreachable($0) }
        try await recovered("a write") { () async throws(TeamStoreError) in try await writer.put("/c") }
        var continued = store.changes(of: "/", after: start + 1).makeAsyncIterator()
        let change = try #require(await continued.next())
        #expect(change.changes == [.put(TeamStoreEntry(key: "/c", value: []))])
        try cluster.servers[0].thaw()
    }

    @Test(.needs(.etcd)) func `a hanging server does not delay calls to the others for long`() async throws {
        let cluster = try await EtcdCluster(servers: 3, in: scratch)
        try cluster.servers[0].freeze()
        let store = try await cluster.store()
        try await recovered("a list") { () async throws(TeamStoreError) in _ = try await store.list("/") }
        try cluster.servers[0].thaw()
    }

    /// Starts a server with a certificate for this team that accepts only clients of another authority.
    ///
    /// - Returns: The URL of the server.
    private func startRefusingServer(
        _ certificates: EtcdCertificates,
        in scratch: ScratchFolder
    ) async throws -> String {
        let server = try await certificates.issue("etcd0", addresses: ["127.0.0.1"])
        let other = try await EtcdCertificates(in: scratch)
        let port = try FreePorts.take()[0]
        let program = try await Program(
            "openssl",
            [
                // With -www, the server does not end with its standard input.
                "s_server", "-www", "-accept", "\(port)", "-cert", server.certificatePath, "-key", server.keyPath,
                "-Verify", "1", "-verify_return_error", "-CAfile", other.authorityPath,
            ],
            in: scratch
        )
        try await program.waitForLine("ACCEPT")
        return "https://127.0.0.1:\(port)"
    }

    @Test(.needs(.etcd)) func `a server that refuses the certificate of a host does not keep it from the others`()
        async throws
    {
        let cluster = try await EtcdCluster(in: scratch)
        let refusing = try await startRefusingServer(cluster.certificates, in: scratch)
        let endpoints = [refusing] + cluster.endpoints

        let store = try await cluster.store(endpoints: endpoints)
        try await store.put("/a", "here")
        let list = try await store.list("/")
        #expect(list.entries.map(\.text) == ["/a=here"])

        let watcher = try await cluster.store(endpoints: endpoints)
        await #expect {
            for try await _ in watcher.changes(of: "/", after: list.revision - 1) {}
        } throws: { error in
            if case TeamStoreError.denied = error { true } else { false }
        }
        var changes = watcher.changes(of: "/", after: list.revision - 1).makeAsyncIterator()
        #expect(try await changes.next()?.revision == list.revision)

        let refused = try await cluster.store(endpoints: [refusing, refusing])
        await #expect {
            _ = try await refused.list("/")
        } throws: { error in
            if case TeamStoreError.denied = error { true } else { false }
        }
    }

    @Test(.needs(.etcd, .python), arguments: [("404", true), ("503", false)])
    func `a proxy without an etcd behind it does not keep a host from the servers`(
        status: String,
        refuses: Bool
    ) async throws {
        let cluster = try await EtcdCluster(in: scratch)
        let proxy = try await OtherServer(answering: status, cluster.certificates, in: scratch)
        let endpoints = [proxy.endpoint] + cluster.endpoints

        #expect(try await cluster.store(endpoints: endpoints).list("/").entries.isEmpty)

        let writer = try await cluster.store(endpoints: endpoints)
        // The proxy may have passed the first write on, so only the caller can repeat it.
        if !refuses { await #expect { try await writer.put("/a") } throws: { isUnreachable($0) } }
        try await writer.put("/a")
        let revision = try await writer.list("/").revision

        let watcher = try await cluster.store(endpoints: endpoints)
        await #expect {
            for try await _ in watcher.changes(of: "/", after: revision - 1) {}
        } throws: { isUnreachable($0) }
        var changes = watcher.changes(of: "/", after: revision - 1).makeAsyncIterator()
        #expect(try await changes.next()?.revision == revision)
    }

    @Test(.needs(.etcd)) func `a single server keeps its entries and leases over a restart`() async throws {
        let cluster = try await EtcdCluster(in: scratch)
        let store = try await cluster.store()
        let lease = try await store.grantSessionLease(timeToLive: .seconds(60))
        try await store.put("/a", sessionLease: lease)
        try await cluster.servers[0].kill()
        await #expect { try await store.list("/") } throws: { isUnreachable($0) }
        try await cluster.restart(cluster.servers[0])
        try await recovered("a renewal") { () async throws(TeamStoreError) in try await store.renewSessionLease(lease) }
        #expect(try await store.list("/").entries.map(\.key) == ["/a"])
    }
}
