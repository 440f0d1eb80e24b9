import FoundationEssentials
import Glibc
import Model
import SystemIO
import Testing

@testable import Tunnels

/// Who comes through a tunnel, and that nobody is dialled for those who do not.
@Suite(.serialized, .timeLimit(.minutes(1)))
struct ClientAuthorizerTests {
    private let bench = TableBench()
    private let dialer = CountingDialer()
    private let evil = Array("GET / HTTP/1.1\r\nHost: localhost\r\nOrigin: null\r\n\r\n".utf8)

    private func spec(anyUser: Bool = false, browsers: Bool = false) -> TunnelSpec {
        TunnelSpec(
            local: .tcp(host: nil, port: 0),
            target: bench.target,
            allowsAnyUser: anyUser,
            allowsBrowsers: browsers
        )
    }

    /// Runs a tunnel to an echo server.
    private func withTunnel(
        _ spec: TunnelSpec,
        owner: UInt32? = nil,
        limits: InspectionTimeouts = InspectionTimeouts(),
        check: ClientOwnerCheck? = nil,
        _ body: (TunnelTable, SocketAddress) async throws -> Void
    ) async throws {
        let echo = try EchoServer()
        bench.resolver.set(.success([echo.route]))
        let table = try await TunnelTable(
            resolver: bench.resolver,
            dialer: dialer,
            store: nil,
            check: check,
            limits: TunnelLimits(screen: limits),
            logger: TableBench.quiet
        )
        try await bench.running(table) {
            async let _: Void = echo.run()
            try await body(table, try bench.address(try await table.create(spec, owner: owner)))
        }
    }

    private func failures(_ table: TunnelTable) async -> [String: UInt64]? {
        await table.list().first?.statistics.failures
    }

    @Test func `the owner's client comes through, on both loopback addresses`() async throws {
        try await withTunnel(spec()) { table, address in
            for bound in [address, .ipv6(1, port: address.port ?? 0, scope: 0)] {
                let client = try await Stream.connect(to: bound)
                try await client.send([1, 2])
                #expect(try await client.receive(2) == [1, 2])
            }
            #expect(await failures(table) == [:])
            #expect(await table.list().first?.owner == geteuid())
        }
    }

    @Test func `a client of another user is reset, counted, and nothing is dialled`() async throws {
        try await withTunnel(spec(), owner: getuid() + 1) { table, address in
            #expect(await Stream.isReset(by: address))
            #expect(await failures(table) == ["foreignUser": 1])
            #expect(dialer.count == 0)
        }
        try await withTunnel(spec(anyUser: true), owner: getuid() + 1) { _, address in
            let client = try await Stream.connect(to: address)
            try await client.send([1])
            #expect(try await client.receive(1) == [1])
        }
    }

    @Test func `a client that half-closed comes through`() async throws {
        try await withTunnel(spec()) { _, address in
            let client = try await Stream.connect(to: address)
            try await client.send([9])
            client.finish()

            #expect(try await client.receiveToEnd() == [9])
        }
    }

    @Test func `where the kernel does not answer nobody comes in, and the reason has a next step`() async throws {
        struct Silence: Error {}
        let check = ClientOwnerCheck(asking: { _, _ in throw Silence() }, logger: TableBench.quiet)
        try await withTunnel(spec(), check: check) { table, address in
            var events = await table.events().makeAsyncIterator()
            #expect(await Stream.isReset(by: address))
            #expect(dialer.count == 0)
            guard case .connectionFailed(_, let failure)? = await events.next() else {
                Issue.record("no failure was told")
                return
            }
            #expect(failure.reason == .foreignUser)
            #expect(failure.description.contains("tcp_diag") && failure.description.contains("--allow-any-user"))
        }
    }

    @Test func `a client that is gone is nobody's failure, unless it left something`() async throws {
        let check = ClientOwnerCheck(logger: TableBench.quiet)
        for message in [[], [1]] as [[UInt8]] {
            var (client, accepted): (Stream?, Stream) = try await Stream.tcpPair()
            #expect(check.verdict(on: accepted.number, owner: getuid()) == .passes)
            try await client?.send(message)
            client = nil

            switch check.verdict(on: accepted.number, owner: getuid()) {
            case .left: #expect(message.isEmpty)
            case .refused(let failure): #expect(failure.reason == .foreignUser && !message.isEmpty)
            case .passes: Issue.record("a closed client came through")
            }
            // The kernel says user 0 of it; a tunnel of root's is none the more open.
            #expect(check.verdict(on: accepted.number, owner: 0) != .passes)
            _ = client
        }
    }

    @Test func `a request of a page gets 403, is counted, and nothing is dialled`() async throws {
        try await withTunnel(spec()) { table, address in
            let client = try await Stream.connect(to: address)
            try await client.send(evil)

            let answer = String(decoding: try await client.receiveToEnd(), as: UTF8.self)

            #expect(answer.hasPrefix("HTTP/1.1 403 ") && answer.contains("--allow-browsers"))
            #expect(await failures(table) == ["browser": 1])
            #expect(dialer.count == 0)
        }
        try await withTunnel(spec(browsers: true)) { _, address in
            let client = try await Stream.connect(to: address)
            try await client.send(evil)
            #expect(try await client.receive(evil.count) == evil)
        }
    }

    @Test func `a large body does not take the refusal away from its sender`() async throws {
        try await withTunnel(spec()) { _, address in
            let client = try await Stream.connect(to: address)
            let sender = client.duplicate()
            async let sent: Void? = try? sender.send(evil + pattern(4 << 20))

            #expect(String(decoding: try await client.receiveToEnd(), as: UTF8.self).hasPrefix("HTTP/1.1 403 "))
            _ = await sent
        }
    }

    @Test func `a head that comes in pieces is waited for, up to its limit`() async throws {
        try await withTunnel(spec(), limits: InspectionTimeouts(head: .milliseconds(300))) { table, address in
            let client = try await Stream.connect(to: address)
            for piece in ["G", "ET", " / HT", "TP/1.1\r\nHo", "st: localhost\r\n", "Origin: x"] {
                try await client.send(Array(piece.utf8))
                try await Task.sleep(for: .milliseconds(15))
            }
            #expect(dialer.count == 0)
            #expect(String(decoding: try await client.receiveToEnd(), as: UTF8.self).hasPrefix("HTTP/1.1 403 "))
            #expect(await failures(table) == ["browser": 1])
            #expect(dialer.count == 0)
        }
    }

    @Test func `a client that says nothing is dialled for all the same, and looked at when it speaks`() async throws {
        try await withTunnel(spec()) { table, address in
            let client = try await Stream.connect(to: address)
            #expect(try await eventually { dialer.count == 1 })
            try await client.send(evil)

            #expect(String(decoding: try await client.receiveToEnd(), as: UTF8.self).hasPrefix("HTTP/1.1 403 "))
            #expect(try await eventually { await failures(table) == ["browser": 1] })
            #expect(await table.list().first?.statistics.bytesUp == 0)
        }
    }

    @Test func `a word that may be anything, and one with its end, come through`() async throws {
        try await withTunnel(spec()) { _, address in
            for word in ["JDWP-Handshake", "hello", "P"] {
                let client = try await Stream.connect(to: address)
                try await client.send(Array(word.utf8))
                #expect(try await client.receive(word.utf8.count) == Array(word.utf8))
                let other = try await Stream.connect(to: address)
                try await other.send(Array(word.utf8))
                other.finish()
                #expect(try await other.receiveToEnd() == Array(word.utf8))
            }
        }
    }

    @Test func `a unix socket has its mode, and neither check`() async throws {
        let echo = try EchoServer()
        bench.resolver.set(.success([echo.route]))
        let scratch = Scratch()
        let table = try await bench.table(dialer)
        try await bench.running(table) {
            async let _: Void = echo.run()
            let tunnel = try await table.create(bench.spec(.unix(path: "\(scratch.path)/t.sock")), owner: getuid() + 1)
            let client = try await Stream.connect(to: try bench.address(tunnel))
            try await client.send(evil)
            #expect(try await client.receive(evil.count) == evil)
        }
    }

    @Test func `the owner and the permissions are kept, and older files have neither`() async throws {
        let scratch = Scratch()
        let store = TunnelStore(directory: scratch.path, logger: TableBench.quiet)
        let first = try await bench.table(store: store)
        try await bench.running(first) { _ = try await first.create(spec(anyUser: true, browsers: true), owner: 4_711) }

        let second = try await bench.table(store: store)
        try await bench.running(second) {
            let tunnel = try #require(await second.list().first)
            #expect(tunnel.owner == 4_711)
            #expect(tunnel.spec.allowsAnyUser && tunnel.spec.allowsBrowsers)
        }

        let old = """
            {"schema":1,"content":{"next":2,"tunnels":[{"id":"t1","port":1,"since":"2026-11-21T10:00:00.000Z","spec":\
            {"isKept":true,"local":"unix:\(scratch.path)/old.sock","noRebind":false,"target":{"endpoint":"shop"}}}]}}
            """
        try Data(old.utf8).write(to: URL(filePath: "\(scratch.path)/tunnels.json"))
        let third = try await bench.table(store: store)
        try await bench.running(third) {
            let tunnel = try #require(await third.list().first)
            #expect(tunnel.owner == geteuid())
            #expect(!tunnel.spec.allowsAnyUser && !tunnel.spec.allowsBrowsers)
        }
    }

    @Test func `the same tunnel asked for by another user is made anew for that user`() async throws {
        try await withTunnel(spec()) { table, address in
            let again = TunnelSpec(local: .tcp(host: nil, port: address.port ?? 0), target: bench.target)
            let mine = try await table.create(again)
            let theirs = try await table.create(again, owner: getuid() + 1)

            #expect(theirs.id != mine.id && theirs.owner == getuid() + 1)
            #expect(await Stream.isReset(by: address))
        }
    }
}
