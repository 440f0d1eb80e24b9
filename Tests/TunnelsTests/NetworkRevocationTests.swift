import Glibc
import Model
import Synchronization
import SystemIO
import TestSupport
import Testing
import Tunnels

/// Connections over the network after the approval of their route is revoked.
@Suite(.serialized, .timeLimit(.minutes(1)))
struct NetworkRevocationTests {
    private let fixture = TunnelTableFixture()
    private let network = Route.network(NetworkRoute(address: "192.0.2.1", port: 80, interface: "eth0"))
    private let cable = Route.usb(USBRoute(udid: TunnelTableFixture.udid, port: 80))

    @Test func `network connections are closed, USB connections and the tunnel stay open`() async throws {
        let echo = try EchoServer()
        let table = try await fixture.table(Self.dialer(to: echo.route))
        try await fixture.running(table) {
            defer { echo.stop() }
            let tunnel = try await table.create(fixture.spec())
            let other = try await table.create(fixture.spec())
            fixture.resolver.set(.success([network]))
            let far = try await client(of: tunnel)
            let others = try await client(of: other)
            fixture.resolver.set(.success([cable]))
            let near = try await client(of: tunnel)

            await table.closeConnections(of: [tunnel.id], over: .network)

            await #expect(throws: SocketStream.Failure(code: ECONNRESET)) { try await far.receiveSome() }
            for stream in [near, others] {
                try await stream.send([9])
                #expect(try await stream.receive(1) == [9])
            }
            fixture.resolver.set(.success([network]))
            _ = try await client(of: tunnel)
            #expect(await table.list().map(\.id) == [tunnel.id, other.id])
        }
    }

    @Test func `a client with a dial in progress is reset, and the target receives no byte`() async throws {
        let server = try Listener(on: .ipv4(INADDR_LOOPBACK, port: 0))
        let port = try #require(server.address.port)
        let gate = AsyncStream.makeStream(of: Void.self)
        let dialer = Self.dialer(to: .network(NetworkRoute(address: "127.0.0.1", port: port)), after: gate.stream)
        fixture.resolver.set(.success([network]))
        let table = try await fixture.table(dialer)
        try await fixture.running(table) {
            let tunnel = try await table.create(fixture.spec())
            let client = try await SocketStream.connect(to: try fixture.address(tunnel))
            try await client.send([1, 2, 3])
            for await _ in dialer.begun.stream { break }

            await table.closeConnections(of: [tunnel.id], over: .network)
            gate.continuation.finish()

            await #expect(throws: SocketStream.Failure(code: ECONNRESET)) { try await client.receiveSome() }
            let reached = SocketStream(owning: try await server.accept())
            #expect((try? await reached.receiveSome()) ?? [] == [])
            #expect(await table.list().first?.statistics.failures == ["forbidden": 1])
        }
    }

    @Test func `connections are closed after a revocation, and the tunnel works again after an approval`()
        async throws
    {
        let echo = try EchoServer()
        fixture.resolver.set(.success([network]))
        let table = try await fixture.table(Self.dialer(to: echo.route))
        try await fixture.running(table) {
            defer { echo.stop() }
            let tunnel = try await table.create(fixture.spec())
            let before = try await client(of: tunnel)

            fixture.resolver.set(.failure(DialError(.forbidden, "it is not where it was approved")))
            await table.refreshTargets()

            await #expect(throws: SocketStream.Failure(code: ECONNRESET)) { try await before.receiveSome() }
            #expect(await SocketStream.isReset(by: try fixture.address(tunnel)))
            #expect(await table.list().first?.state == .waiting(reason: "it is not where it was approved"))
            fixture.resolver.set(.success([network]))
            await table.refreshTargets()
            _ = try await client(of: tunnel)
        }
    }

    @Test func `connections over a revoked route are closed while another route is approved`() async throws {
        let echo = try EchoServer()
        let moved = NetworkRoute(
            address: "192.0.2.1",
            port: 80,
            interface: "eth0",
            machine: SanitizedText("thief.local")
        )
        let other = Route.network(NetworkRoute(address: "192.0.2.2", port: 80, interface: "eth0"))
        let table = try await fixture.table(Self.dialer(to: echo.route))
        try await fixture.running(table) {
            defer { echo.stop() }
            let tunnel = try await table.create(fixture.spec())
            fixture.resolver.set(.success([network]))
            let revoked = try await client(of: tunnel)
            fixture.resolver.set(.success([other]))
            await table.refreshTargets()
            let approved = try await client(of: tunnel)

            fixture.resolver.refused.withLock { $0 = [.network(moved)] }
            await table.refreshTargets()

            await #expect(throws: SocketStream.Failure(code: ECONNRESET)) { try await revoked.receiveSome() }
            try await approved.send([9])
            #expect(try await approved.receive(1) == [9])
            #expect(await table.list().first?.state == .active)
        }
    }

    /// Returns a dialer that connects every route to one server, after the end of the gate's stream.
    private static func dialer(to goal: Route, after gate: AsyncStream<Void>? = nil) -> FakeDialer {
        FakeDialer { _ in
            if let gate { for await _ in gate {} }
            return try await NetworkPlanner().dial(goal)
        }
    }

    /// A client with an established connection: its first byte was echoed.
    private func client(of tunnel: Tunnel) async throws -> SocketStream {
        let client = try await SocketStream.connect(to: try fixture.address(tunnel))
        try await client.send([1])
        #expect(try await client.receive(1) == [1])
        return client
    }
}
