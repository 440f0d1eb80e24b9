import FoundationEssentials
import Glibc
import Model
import Samples
import SystemIO
import TestSupport
import Testing

@testable import Tunnels

/// Authorization of tunnel clients. The target is not dialed for a rejected client.
@Suite(.serialized, .timeLimit(.minutes(1)), .scratchFolder)
struct ClientAuthorizerTests {
    private let scratch = ScratchFolder.current
    private let fixture = TunnelTableFixture()
    private let dialer = FakeDialer { try await NetworkPlanner().dial($0) }
    private let evil = Array("GET / HTTP/1.1\r\nHost: localhost\r\nOrigin: null\r\n\r\n".utf8)

    private func spec(anyUser: Bool = false, browsers: Bool = false) -> TunnelSpec {
        TunnelSpec(
            local: .tcp(host: nil, port: 0),
            target: fixture.target,
            allowAnyUser: anyUser,
            allowBrowsers: browsers
        )
    }

    /// Runs a tunnel to an echo server.
    private func withTunnel(
        _ spec: TunnelSpec,
        owner: UInt32? = nil,
        limits: InspectionTimeouts = InspectionTimeouts(),
        check: ClientOwnerCheck? = nil,
        policy: (any ConnectionPolicy)? = nil,
        _ body: (TunnelTable, SocketAddress) async throws -> Void
    ) async throws {
        let echo = try EchoServer()
        fixture.resolver.set(.success([echo.route]))
        let table = try await TunnelTable(
            planner: RoutePlanner(resolver: fixture.resolver, planner: dialer),
            check: check,
            policy: policy,
            limits: TunnelLimits(inspection: limits),
            logger: .quiet
        )
        try await fixture.running(table) {
            defer { echo.stop() }
            try await body(table, try fixture.address(try await table.create(spec, owner: owner)))
        }
    }

    private func failures(_ table: TunnelTable) async -> [String: UInt64]? {
        await table.list().first?.statistics.failures
    }

    @Test func `a client of the owner connects on both loopback addresses`() async throws {
        try await withTunnel(spec()) { table, address in
            for bound in [address, .ipv6(1, port: address.port ?? 0, scope: 0)] {
                let client = try await SocketStream.connect(to: bound)
                try await client.send([1, 2])
                #expect(try await client.receive(2) == [1, 2])
            }
            #expect(await failures(table) == [:])
            #expect(await table.list().first?.owner == geteuid())
        }
    }

    @Test(.needs(.root))
    func `a client of another user is reset on a unix socket too, and the target is not dialed`() async throws {
        let path = scratch.file("a")
        chmod(scratch.path, 0o755)
        let spec = TunnelSpec(local: .unix(path: path), target: fixture.target)
        try await withTunnel(spec, owner: geteuid()) { table, address in
            chmod(path, 0o666)
            let request = ["curl", "-sS", "--max-time", "5", "--unix-socket", path, "http://localhost/"]
            let client = try await Program("setpriv", ["--reuid=4322", "--clear-groups"] + request, in: scratch)
            _ = try await client.exitStatus()
            #expect(await failures(table) == ["foreignUser": 1], "\(client.log)")
            #expect(dialer.routes.isEmpty)

            let own = try await SocketStream.connect(to: address)
            try await own.send([1])
            #expect(try await own.receive(1) == [1])
        }
    }

    @Test func `a client of another user is reset and counted, and the target is not dialed`() async throws {
        try await withTunnel(spec(), owner: getuid() + 1) { table, address in
            #expect(await SocketStream.isReset(by: address))
            #expect(await failures(table) == ["foreignUser": 1])
            #expect(dialer.routes.count == 0)
        }
        try await withTunnel(spec(anyUser: true), owner: getuid() + 1) { _, address in
            let client = try await SocketStream.connect(to: address)
            try await client.send([1])
            #expect(try await client.receive(1) == [1])
        }
    }

    /// Refuses every connection to these targets.
    private struct Refusal: ConnectionPolicy {
        let refused: TunnelTarget

        func check(of target: TunnelTarget, for holder: String?, owner: UInt32) async -> @Sendable () -> DialError? {
            let isRefused = target == refused
            return { isRefused ? DialError(.leased, "leased") : nil }
        }
    }

    @Test func `a connection that the policy refuses is reset and counted, and the target is not dialed`() async throws
    {
        try await withTunnel(spec(), policy: Refusal(refused: fixture.target)) { table, address in
            #expect(await SocketStream.isReset(by: address))
            #expect(await failures(table) == ["leased": 1])
            #expect(dialer.routes.count == 0)
        }
        let other = TunnelTarget.device(udid: TunnelTableFixture.udid, port: 1)
        try await withTunnel(spec(), policy: Refusal(refused: other)) { _, address in
            let client = try await SocketStream.connect(to: address)
            try await client.send([1])
            #expect(try await client.receive(1) == [1])
        }
    }

    @Test func `a half-closed client connects and gets its response`() async throws {
        try await withTunnel(spec()) { _, address in
            let client = try await SocketStream.connect(to: address)
            try await client.send([9])
            client.finish()

            #expect(try await client.receiveToEnd() == [9])
        }
    }

    @Test func `every client is reset while the kernel lookup fails, and the reason has a hint`() async throws {
        struct Silence: Error {}
        let check = ClientOwnerCheck(lookup: { _, _ in throw Silence() }, logger: .quiet)
        try await withTunnel(spec(), check: check) { table, address in
            var events = await table.events().makeAsyncIterator()
            #expect(await SocketStream.isReset(by: address))
            #expect(dialer.routes.count == 0)
            guard case .connectionFailed(_, let failure)? = await events.next() else {
                Issue.record("no failure was told")
                return
            }
            #expect(failure.reason == .foreignUser)
            #expect(failure.description.contains("tcp_diag") && failure.description.contains("--allow-any-user"))
        }
    }

    @Test func `a disconnected client is counted as a failure only if it sent data`() async throws {
        let check = ClientOwnerCheck(logger: .quiet)
        for message in [[], [1]] as [[UInt8]] {
            var (client, accepted): (SocketStream?, SocketStream) = try await SocketStream.tcpPair()
            let peer = try #require(SocketAddress.peer(of: accepted.number))
            let local = try #require(SocketAddress.local(of: accepted.number))
            func evaluate(owner: UInt32) -> ClientOwnerCheck.Decision {
                check.evaluate(accepted.number, from: peer, to: local, owner: owner)
            }
            #expect(evaluate(owner: getuid()) == .passes)
            try await client?.send(message)
            client = nil

            switch evaluate(owner: getuid()) {
            case .disconnected: #expect(message.isEmpty)
            case .refused(let failure): #expect(failure.reason == .foreignUser && !message.isEmpty)
            case .passes: Issue.record("a closed client came through")
            }
            // The kernel reports UID 0 for a closed socket. A tunnel of root must reject it too.
            #expect(evaluate(owner: 0) != .passes)
            _ = client
        }
    }

    @Test func `a browser request gets 403 and is counted, and the target is not dialed`() async throws {
        try await withTunnel(spec()) { table, address in
            let client = try await SocketStream.connect(to: address)
            try await client.send(evil)

            let answer = String(decoding: try await client.receiveToEnd(), as: UTF8.self)

            #expect(answer.hasPrefix("HTTP/1.1 403 ") && answer.contains("--allow-browsers"))
            try await eventually("the failure is counted") { await failures(table) == ["browser": 1] }
            #expect(dialer.routes.count == 0)
        }
        try await withTunnel(spec(browsers: true)) { _, address in
            let client = try await SocketStream.connect(to: address)
            try await client.send(evil)
            #expect(try await client.receive(evil.count) == evil)
        }
    }

    @Test func `a client that sends a large body still receives the 403 response`() async throws {
        try await withTunnel(spec()) { _, address in
            let client = try await SocketStream.connect(to: address)
            let sender = client.duplicate()
            async let sent: Void? = try? sender.send(evil + Pattern.bytes(0..<(4 << 20)))

            #expect(String(decoding: try await client.receiveToEnd(), as: UTF8.self).hasPrefix("HTTP/1.1 403 "))
            _ = await sent
        }
    }

    @Test func `a fragmented request head is awaited up to its timeout`() async throws {
        try await withTunnel(spec(), limits: InspectionTimeouts(head: .milliseconds(300))) { table, address in
            let client = try await SocketStream.connect(to: address)
            for piece in ["G", "ET", " / HT", "TP/1.1\r\nHo", "st: localhost\r\n", "Origin: x"] {
                try await client.send(Array(piece.utf8))
                try await Task.sleep(for: .milliseconds(15))
            }
            #expect(dialer.routes.count == 0)
            #expect(String(decoding: try await client.receiveToEnd(), as: UTF8.self).hasPrefix("HTTP/1.1 403 "))
            try await eventually("the failure is counted") { await failures(table) == ["browser": 1] }
            #expect(dialer.routes.count == 0)
        }
    }

    @Test func `the target of a silent client is dialed, and the client's first bytes are inspected later`()
        async throws
    {
        try await withTunnel(spec()) { table, address in
            let client = try await SocketStream.connect(to: address)
            try await eventually("the target is dialed") { dialer.routes.count == 1 }
            try await client.send(evil)

            #expect(String(decoding: try await client.receiveToEnd(), as: UTF8.self).hasPrefix("HTTP/1.1 403 "))
            try await eventually("the failure is counted") { await failures(table) == ["browser": 1] }
            #expect(await table.list().first?.statistics.bytesUp == 0)
        }
    }

    @Test func `a word that is not HTTP passes, with and without EOF`() async throws {
        try await withTunnel(spec()) { _, address in
            for word in ["JDWP-Handshake", "hello", "P"] {
                let client = try await SocketStream.connect(to: address)
                try await client.send(Array(word.utf8))
                #expect(try await client.receive(word.utf8.count) == Array(word.utf8))
                let other = try await SocketStream.connect(to: address)
                try await other.send(Array(word.utf8))
                other.finish()
                #expect(try await other.receiveToEnd() == Array(word.utf8))
            }
        }
    }

    @Test func `a client of a unix socket passes without a browser guard`() async throws {
        let echo = try EchoServer()
        fixture.resolver.set(.success([echo.route]))
        let scratch = Scratch()
        let table = try await fixture.table(dialer)
        try await fixture.running(table) {
            defer { echo.stop() }
            let tunnel = try await table.create(fixture.spec(.unix(path: "\(scratch.path)/t.sock")), owner: getuid())
            let client = try await SocketStream.connect(to: try fixture.address(tunnel))
            try await client.send(evil)
            #expect(try await client.receive(evil.count) == evil)
        }
    }

    @Test func `the owner and the permissions persist, and older files load without them`() async throws {
        let scratch = Scratch()
        let store = TunnelStore(directory: scratch.path, logger: .quiet)
        let first = try await fixture.table(store: store)
        try await fixture.running(first) {
            _ = try await first.create(spec(anyUser: true, browsers: true), owner: 4_711)
        }

        let second = try await fixture.table(store: store)
        try await fixture.running(second) {
            let tunnel = try #require(await second.list().first)
            #expect(tunnel.owner == 4_711)
            #expect(tunnel.spec.allowAnyUser && tunnel.spec.allowBrowsers)
        }

        let old = """
            {"schema":1,"content":{"next":2,"tunnels":[{"id":"t1","port":1,"createdAt":"2026-11-21T10:00:00.000Z","spec":\
            {"persistent":true,"local":"unix:\(scratch.path)/old.sock","noRebind":false,"target":{"endpoint":"shop"}}}]}}
            """
        try Data(old.utf8).write(to: URL(filePath: "\(scratch.path)/tunnels.json"))
        let third = try await fixture.table(store: store)
        try await fixture.running(third) {
            let tunnel = try #require(await third.list().first)
            #expect(tunnel.owner == geteuid())
            #expect(!tunnel.spec.allowAnyUser && !tunnel.spec.allowBrowsers)
        }
    }

    @Test func `an identical tunnel of another user replaces the existing one`() async throws {
        try await withTunnel(spec()) { table, address in
            let again = TunnelSpec(local: .tcp(host: nil, port: address.port ?? 0), target: fixture.target)
            let mine = try await table.create(again)
            let theirs = try await table.create(again, owner: getuid() + 1)

            #expect(theirs.id != mine.id && theirs.owner == getuid() + 1)
            #expect(await SocketStream.isReset(by: address))
        }
    }
}
