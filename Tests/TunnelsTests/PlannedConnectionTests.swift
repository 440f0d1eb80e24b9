import Glibc
import Model
import Synchronization
import SystemIO
import TestSupport
import Testing

@testable import Tunnels

/// Connections that the event loop opens by a plan, with a handshake like that of usbmuxd.
@Suite(.serialized, .timeLimit(.minutes(1)))
struct PlannedConnectionTests {
    private let fixture = TunnelTableFixture()
    private static let route = Route.usb(USBRoute(udid: TunnelTableFixture.udid, port: 1))
    private static let network = Route.network(NetworkRoute(address: "192.0.2.1", port: 1))

    /// Plans streams to a unix socket. The replies are "OK" and "NO".
    private final class FakePlanner: ConnectPlanner {
        let failures = Mutex<[ConnectPlan.AttemptFailure]>([])
        /// The open permits, and the most of them at one time.
        let permits = Mutex((open: 0, most: 0))
        /// False if no permit is free.
        let hasPermits = Mutex(true)
        /// The number of checks of the address that succeed.
        let allowedChecks = Mutex(Int.max)
        private let path: String
        private let verify: @Sendable () -> Bool
        private let timeout: Duration
        /// The requests of the handshake; empty for none.
        private let requests: [String]

        init(_ path: String, timeout: Duration, requests: [String], verify: @escaping @Sendable () -> Bool) {
            (self.path, self.timeout, self.requests, self.verify) = (path, timeout, requests, verify)
        }

        private final class Permit: Sendable {
            private let planner: FakePlanner
            init(_ planner: FakePlanner) {
                self.planner = planner
                planner.permits.withLock { $0 = ($0.open + 1, max($0.most, $0.open + 1)) }
            }
            deinit { planner.permits.withLock { $0.open -= 1 } }
        }

        /// The plan of port 2 leads to another server, which accepts no connection.
        func plan(for route: Route) -> ConnectPlan {
            let handshake = ConnectPlan.Handshake(
                requests: requests.map { Array($0.utf8) },
                evaluate: { bytes in
                    if bytes.count < 2 { return .incomplete }
                    return bytes.prefix(2).elementsEqual("OK".utf8) ? .accepted(length: 2) : .failed(.rejected(code: 7))
                },
                verify: { [verify] _ in verify() }
            )
            return ConnectPlan(
                route: route,
                method: .socket(.unix(path: route.port == 2 ? path + "2" : path), requests.isEmpty ? nil : handshake),
                timeout: timeout,
                limitKey: ConnectLimitKey(server: self, device: 1),
                acquirePermit: { [self] in hasPermits.withLock { $0 } ? Permit(self) : nil },
                isAllowed: { [self] in
                    allowedChecks.withLock { left in
                        left -= 1
                        return left >= 0
                    }
                },
                recover: { [self] failure, _ throws(DialError) in
                    failures.withLock { $0.append(failure) }
                    throw DialError(failure == .timedOut ? .timedOut : .refused, "port \(route.port)")
                }
            )
        }
    }

    /// Runs a tunnel to a server on a unix socket.
    private func withTunnel(
        routes: [Route] = [Self.route],
        timeout: Duration = .seconds(10),
        requests: [String] = ["R"],
        backlog: CInt = 128,
        pause: Duration = .zero,
        verify: @escaping @Sendable () -> Bool = { true },
        serve: @escaping @Sendable (CInt) -> Void,
        _ body: (TunnelTable, Tunnel, FakePlanner) async throws -> Void
    ) async throws {
        try await withScratchFolder { scratch in
            let path = scratch.file("server")
            let server = try LoopbackServer(unixPath: path, backlog: backlog, pause: pause, serve: serve)
            scratch.atEnd { server.stop() }
            let silent = try Listener(on: .unix(path: path + "2"))
            let planner = FakePlanner(path, timeout: timeout, requests: requests, verify: verify)
            fixture.resolver.set(.success(routes))
            let table = try await fixture.table(planner)
            try await fixture.running(table) { try await body(table, try await table.create(fixture.spec()), planner) }
            silent.close()
        }
    }

    /// Reads the request, sends the pieces of the reply, and echoes.
    private static func answer(_ pieces: String...) -> @Sendable (CInt) -> Void {
        { number in
            var byte: UInt8 = 0
            guard recv(number, &byte, 1, 0) == 1, byte == UInt8(ascii: "R") else { return }
            for piece in pieces {
                _ = BlockingStream.send(Array(piece.utf8)[...], to: number)
                usleep(20_000)
            }
            while recv(number, &byte, 1, 0) == 1 { _ = BlockingStream.send([byte], to: number) }
        }
    }

    @Test func `a reply may come in pieces, and the target's bytes after it reach the client first`() async throws {
        try await withTunnel(serve: Self.answer("O", "Khel", "lo")) { table, tunnel, planner in
            let client = try await SocketStream.connect(to: try fixture.address(tunnel))
            try await client.send([7])

            #expect(try await client.receive(6) == Array("hello".utf8) + [7])
            #expect(planner.failures.withLock { $0 } == [])
            client.finish()
            try await eventually("the permit is released") { planner.permits.withLock { $0.open } == 0 }
            #expect(await table.list().first?.statistics.failures == [:])
        }
    }

    @Test func `a request is sent after the reply to the one before`() async throws {
        let serve: @Sendable (CInt) -> Void = { number in
            for request in ["one", "two"] {
                var bytes = [UInt8](repeating: 0, count: 16)
                // A longer message contains a request that came too early.
                guard recv(number, &bytes, bytes.count, 0) == 3, bytes.starts(with: request.utf8) else { return }
                usleep(20_000)
                _ = BlockingStream.send(Array("OK".utf8)[...], to: number)
            }
            _ = BlockingStream.send(Array("hello".utf8)[...], to: number)
        }
        try await withTunnel(requests: ["one", "two"], serve: serve) { _, tunnel, planner in
            let client = try await SocketStream.connect(to: try fixture.address(tunnel))
            try await client.send([7])

            #expect(try await client.receive(5) == Array("hello".utf8))
            #expect(planner.failures.withLock { $0 } == [])
        }
    }

    @Test func `a rejection and another peer are failures, whose reason is counted after one attempt`() async throws {
        let cases: [(String, Bool, ConnectPlan.AttemptFailure)] = [
            ("NO", true, .rejected(code: 7)), ("OK", false, .closed),
        ]
        for (reply, isVerified, failure) in cases {
            try await withTunnel(verify: { isVerified }, serve: Self.answer(reply)) { table, tunnel, planner in
                let address = try fixture.address(tunnel)
                #expect(await SocketStream.isReset(by: address))
                #expect(planner.failures.withLock { $0 } == [failure])
                #expect(await table.list().first?.statistics.failures == ["refused": 1])
                #expect(planner.permits.withLock { $0.open } == 0)
            }
        }
    }

    @Test func `every connect without a permit has that reason, however many there are`() async throws {
        let serve = Self.answer("OK")
        try await withTunnel(timeout: .milliseconds(100), serve: serve) { table, tunnel, planner in
            planner.hasPermits.withLock { $0 = false }
            let address = try fixture.address(tunnel)
            await withDiscardingTaskGroup { group in
                for _ in 0..<10 { group.addTask { #expect(await SocketStream.isReset(by: address)) } }
            }
            #expect(planner.failures.withLock { $0 } == Array(repeating: .noPermit, count: 10))
        }
    }

    @Test func `a server without a reply is a timeout`() async throws {
        try await withTunnel(timeout: .milliseconds(100), serve: { Self.waitForEnd($0) }) { table, tunnel, planner in
            let address = try fixture.address(tunnel)
            #expect(await SocketStream.isReset(by: address))
            #expect(await table.list().first?.statistics.failures == ["timedOut": 1])
            #expect(planner.permits.withLock { $0.open } == 0)
        }
    }

    @Test func `a full accept queue is tried again`() async throws {
        let serve = Self.answer("OK")
        try await withTunnel(backlog: 0, pause: .milliseconds(20), serve: serve) { _, tunnel, planner in
            let address = try fixture.address(tunnel)
            try await withThrowingTaskGroup(of: [UInt8].self) { group in
                for _ in 0..<16 {
                    group.addTask {
                        let client = try await SocketStream.connect(to: address)
                        try await client.send([9])
                        return try await client.receive(1)
                    }
                }
                for try await answer in group { #expect(answer == [9]) }
            }
            #expect(planner.failures.withLock { $0 } == [])
        }
    }

    /// The first route of each test answers after the delay of RFC 8305, or never.
    @Test(arguments: [(first: 1, second: 2), (first: 2, second: 1)])
    func `routes of the network race, and the stream of the first one that answers is used`(
        first: UInt16,
        second: UInt16
    ) async throws {
        let serve: @Sendable (CInt) -> Void = { number in
            if first == 1 { usleep(400_000) }
            Self.answer("OK")(number)
        }
        let routes = [first, second].map { Route.network(NetworkRoute(address: "192.0.2.1", port: $0)) }
        try await withTunnel(routes: routes, timeout: .seconds(50), serve: serve) { _, tunnel, planner in
            let client = try await SocketStream.connect(to: try fixture.address(tunnel))
            try await client.send([9])

            #expect(try await client.receive(1) == [9])
            #expect(planner.failures.withLock { $0 } == [])
            try await eventually("the other attempt has ended") { planner.permits.withLock { $0.open } == 1 }
        }
    }

    @Test func `a target whose routes all fail has the reason of the best one`() async throws {
        let routes = [1, 2].map { Route.network(NetworkRoute(address: "192.0.2.1", port: $0)) }
        let serve = Self.answer("NO")
        try await withTunnel(routes: routes, timeout: .milliseconds(400), serve: serve) { table, _, planner in
            let error = await #expect(throws: DialError.self) {
                try await table.streams.open(fixture.target, for: TunnelOwner(user: 0, holder: nil)) { _ in
                    Issue.record("there is no stream")
                    return Descriptor(owning: try loopbackSocketPair().first)
                }
            }
            #expect(error?.reason == .refused && error?.description == "port 1; then port 2")
            #expect(planner.failures.withLock { $0 } == [.rejected(code: 7), .timedOut])
        }
    }

    @Test func `at most four connects to one device are in flight, and all are served`() async throws {
        let pending = Mutex((now: 0, most: 0))
        let serve: @Sendable (CInt) -> Void = { number in
            pending.withLock { $0 = ($0.now + 1, max($0.most, $0.now + 1)) }
            usleep(5_000)
            pending.withLock { $0.now -= 1 }
            Self.answer("OK")(number)
        }
        try await withTunnel(serve: serve) { _, tunnel, planner in
            let address = try fixture.address(tunnel)
            try await withThrowingTaskGroup(of: [UInt8].self) { group in
                for _ in 0..<64 {
                    group.addTask {
                        let client = try await SocketStream.connect(to: address)
                        try await client.send([9])
                        return try await client.receive(1)
                    }
                }
                for try await answer in group { #expect(answer == [9]) }
            }
            #expect(pending.withLock { $0.most } <= 4)
            #expect(planner.failures.withLock { $0 } == [])
        }
    }

    @Test func `an approval that is revoked during the connect resets the client`() async throws {
        let gate = Mutex(false)
        let serve: @Sendable (CInt) -> Void = { number in
            while !gate.withLock({ $0 }) { usleep(2_000) }
            Self.answer("OK")(number)
        }
        try await withTunnel(routes: [Self.network], serve: serve) { table, tunnel, planner in
            let client = try await SocketStream.connect(to: try fixture.address(tunnel))
            try await client.send([1])
            try await eventually("the connect has begun") { planner.permits.withLock { $0.open } == 1 }

            await table.closeConnections(of: [tunnel.id], over: .network)
            gate.withLock { $0 = true }

            await #expect(throws: SocketStream.Failure(code: ECONNRESET)) { try await client.receiveSome() }
            #expect(await table.list().first?.statistics.failures == ["forbidden": 1])
        }
    }

    @Test func `a client that resets during the connect gives up its permit`() async throws {
        try await withTunnel(serve: { Self.waitForEnd($0) }) { table, tunnel, planner in
            var client: SocketStream? = try await SocketStream.connect(to: try fixture.address(tunnel))
            try await eventually("the connect has begun") { planner.permits.withLock { $0.open } == 1 }
            client?.makeAbortive()
            client = nil

            try await eventually("the connection is closed") { await table.list().first?.statistics.open == 0 }
            #expect(planner.permits.withLock { $0.open } == 0)
            #expect(await table.list().first?.statistics.failures == [:])
            _ = client
        }
    }

    @Test func `a stream of the API uses the same connector`() async throws {
        try await withTunnel(serve: Self.answer("OK")) { table, _, planner in
            let (started, continuation) = AsyncStream.makeStream(of: SocketStream.self)
            async let opened: Void = table.streams.open(fixture.target, for: TunnelOwner(user: 0, holder: nil)) { _ in
                let (inner, outer) = try loopbackSocketPair()
                continuation.yield(SocketStream(owning: Descriptor(owning: outer)))
                return Descriptor(owning: inner)
            }
            for await client in started {
                try await client.send([5])
                #expect(try await client.receive(1) == [5])
                client.finish()
                break
            }
            try await opened
            #expect(planner.failures.withLock { $0 } == [])
        }
    }

    @Test func `a stream of the API whose task is cancelled ends its connect`() async throws {
        try await withTunnel(serve: { Self.waitForEnd($0) }) { table, _, planner in
            await withThrowingTaskGroup(of: Void.self) { group in
                group.addTask {
                    try await table.streams.open(fixture.target, for: TunnelOwner(user: 0, holder: nil)) { _ in
                        Issue.record("there is no stream")
                        return Descriptor(owning: try loopbackSocketPair().first)
                    }
                }
                try? await eventually("the connect has begun") { planner.permits.withLock { $0.open } == 1 }
                group.cancelAll()
                await #expect(throws: CancellationError.self) { try await group.next() }
            }

            try await eventually("the permit is released") { planner.permits.withLock { $0.open } == 0 }
            #expect(planner.failures.withLock { $0 } == [])
            #expect(table.streams.statistics.open == 0 && table.streams.statistics.failures.isEmpty)
        }
    }

    @Test(arguments: ["127.0.0.1", "127.0.0.2", "::ffff:127.0.0.1"])
    func `a tunnel to a registration does not lead to a listener of this process`(_ address: String) async throws {
        let listener = try Listener(on: .ipv4(0, port: 0))
        let port = try #require(listener.address.port)
        fixture.resolver.set(.success([.network(NetworkRoute(address: address, port: port, registration: "r1"))]))
        let table = try await fixture.table()
        try await fixture.running(table) {
            let tunnel = try await table.create(fixture.spec())
            #expect(await SocketStream.isReset(by: try fixture.address(tunnel)))
            #expect(await table.list().first?.statistics.failures == ["forbidden": 1])
            // No connection waits in the accept queue.
            var state = pollfd(fd: listener.number, events: Int16(POLLIN), revents: 0)
            #expect(poll(&state, 1, 0) == 0)
        }
    }

    @Test func `a listener that opens during the connect is found before a byte of the client is sent`() async throws {
        let serve: @Sendable (CInt) -> Void = { Self.waitForEnd($0) }
        try await withTunnel(routes: [Self.network], requests: [], serve: serve) { _, tunnel, planner in
            planner.allowedChecks.withLock { $0 = 1 }
            let address = try fixture.address(tunnel)

            #expect(await SocketStream.isReset(by: address))
            #expect(planner.allowedChecks.withLock { $0 } == -1)
            #expect(planner.failures.withLock { $0 } == [.forbidden])
        }
    }

    @Test func `a task that dials with the relay reads the bytes after the reply itself`() async throws {
        try await withTunnel(serve: Self.answer("OKhello")) { table, _, planner in
            let connection = try await RelayDialer(planner, relay: table.relay).dial(Self.route)
            let stream = SocketStream(owning: Descriptor(owning: connection.release().number))

            #expect(try await stream.receive(5) == Array("hello".utf8))
            #expect(planner.failures.withLock { $0 } == [])
        }
    }

    private static func waitForEnd(_ number: CInt) {
        var byte: UInt8 = 0
        while recv(number, &byte, 1, 0) > 0 {}
    }
}
