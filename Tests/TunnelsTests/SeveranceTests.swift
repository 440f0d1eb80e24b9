import Glibc
import Model
import SystemIO
import Testing
import Tunnels

/// What becomes of connections when a person takes back the yes that let them go through the network.
@Suite(.serialized, .timeLimit(.minutes(1)))
struct SeveranceTests {
    /// Reaches one server, whatever the route; opens nothing before it is told to.
    private final class GatedDialer: Dialer {
        let begun = AsyncStream.makeStream(of: Void.self)
        let gate = AsyncStream.makeStream(of: Void.self)
        private let goal: Route

        init(to goal: Route, isOpen: Bool = true) {
            self.goal = goal
            if isOpen { gate.continuation.finish() }
        }

        func dial(_ route: Route) async throws -> Connection {
            begun.continuation.yield()
            for await _ in gate.stream {}
            return try await LANDialer().dial(goal)
        }
    }

    private let bench = TableBench()
    private let network = Route.lan(LANRoute(address: "192.0.2.1", port: 80, interface: "eth0"))
    private let cable = Route.usb(USBRoute(udid: TableBench.udid, port: 80))

    @Test func `what goes through the network is cut, what goes by cable is not, and the tunnel stands`() async throws {
        let echo = try EchoServer()
        let table = try await bench.table(GatedDialer(to: echo.route))
        try await bench.running(table) {
            async let _: Void = echo.run()
            let tunnel = try await table.create(bench.spec())
            let other = try await table.create(bench.spec())
            bench.resolver.set(.success([network]))
            let far = try await client(of: tunnel)
            let others = try await client(of: other)
            bench.resolver.set(.success([cable]))
            let near = try await client(of: tunnel)

            await table.sever([tunnel.id])

            await #expect(throws: Stream.Failure(code: ECONNRESET)) { try await far.receiveSome() }
            for stream in [near, others] {
                try await stream.send([9])
                #expect(try await stream.receive(1) == [9])
            }
            bench.resolver.set(.success([network]))
            _ = try await client(of: tunnel)
            #expect(await table.list().map(\.id) == [tunnel.id, other.id])
        }
    }

    @Test func `a client whose dial is under way is reset, and its target gets nothing of it`() async throws {
        let server = try Listener(on: .ipv4(INADDR_LOOPBACK, port: 0))
        let port = try #require(server.address.port)
        let dialer = GatedDialer(to: .lan(LANRoute(address: "127.0.0.1", port: port)), isOpen: false)
        bench.resolver.set(.success([network]))
        let table = try await bench.table(dialer)
        try await bench.running(table) {
            let tunnel = try await table.create(bench.spec())
            let client = try await Stream.connect(to: try bench.address(tunnel))
            try await client.send([1, 2, 3])
            for await _ in dialer.begun.stream { break }

            await table.sever([tunnel.id])
            dialer.gate.continuation.finish()

            await #expect(throws: Stream.Failure(code: ECONNRESET)) { try await client.receiveSome() }
            let reached = Stream(owning: try await server.accept())
            #expect((try? await reached.receiveSome()) ?? [] == [])
            #expect(await table.list().first?.statistics.failures == ["forbidden": 1])
        }
    }

    @Test func `a target that must not be reached any more is cut when that is news, and works again after a yes`()
        async throws
    {
        let echo = try EchoServer()
        bench.resolver.set(.success([network]))
        let table = try await bench.table(GatedDialer(to: echo.route))
        try await bench.running(table) {
            async let _: Void = echo.run()
            let tunnel = try await table.create(bench.spec())
            let before = try await client(of: tunnel)

            bench.resolver.set(.failure(DialError(.forbidden, "it is not where it was approved")))
            await table.reconsider()

            await #expect(throws: Stream.Failure(code: ECONNRESET)) { try await before.receiveSome() }
            #expect(await Stream.isReset(by: try bench.address(tunnel)))
            #expect(await table.list().first?.state == .waiting(reason: "it is not where it was approved"))
            bench.resolver.set(.success([network]))
            await table.reconsider()
            _ = try await client(of: tunnel)
        }
    }

    /// One whose first byte came back.
    private func client(of tunnel: Tunnel) async throws -> Stream {
        let client = try await Stream.connect(to: try bench.address(tunnel))
        try await client.send([1])
        #expect(try await client.receive(1) == [1])
        return client
    }
}
