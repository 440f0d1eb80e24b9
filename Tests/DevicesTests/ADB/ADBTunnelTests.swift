import Glibc
import Model
import Samples
import ServiceLifecycle
import Synchronization
import SystemIO
import TestSupport
import Testing
import Tunnels

@testable import Devices

/// Tunnels to simulated phones behind the real adb server, in the cases in which `adb forward` loses bytes.
@Suite(.needs(.adb), .scratchFolder, .timeLimit(.minutes(3))) struct ADBTunnelTests {
    private let scratch = ScratchFolder.current
    private let phone = AndroidPhone("R58M12ABCDE")

    private struct FixedResolver: RouteResolver {
        let route: Route

        func resolve(_ target: TunnelTarget) -> ResolvedTarget { ResolvedTarget([route]) }
    }

    /// Runs a tunnel to a port of the phone.
    private func withTunnel(
        to port: UInt16,
        on rig: ADBFixture,
        _ body: @Sendable (_ local: UInt16, TunnelTable) async throws -> Void
    ) async throws {
        let udid = try #require(RigTransports.udids[phone.serial])
        let route = USBRoute(udid: udid, port: port)
        let table = try await TunnelTable(
            planner: RoutePlanner(
                resolver: FixedResolver(route: .usb(route)),
                planner: ADBPlanner(RigTransports(rig))
            ),
            relay: Relay(idle: .milliseconds(300)),
            logger: .quiet
        )
        let group = ServiceGroup(services: [table], logger: .quiet)
        async let ended: Void = group.run()
        let spec = TunnelSpec(
            local: .tcp(host: "127.0.0.1", port: 0),
            target: .device(route),
            persistent: false,
            // The user of a client that has already closed cannot be determined, and the client would be dropped.
            allowAnyUser: true
        )
        let tunnel = try await table.create(spec)
        guard case .tcp(_, let port)? = tunnel.listenAddresses.first else { return }
        do { try await body(port, table) } catch {
            await group.triggerGracefulShutdown()
            throw error
        }
        await group.triggerGracefulShutdown()
        try await ended
    }

    @Test func `every byte before an immediate half-close or close reaches the app, 40 times each`() async throws {
        let uploads = Mutex<[Int]>([])
        // The app only reads, because the end of its own stream would end both directions.
        let app = try LoopbackServer(in: scratch) { connection in
            let received = PatternPeer(connection, deadline: .now + .seconds(30)).receive()
            uploads.withLock { $0.append(received.isIntact ? received.count : 0) }
        }
        let rig = try await ADBFixture([phone], in: scratch)
        try await withTunnel(to: app.port, on: rig) { local, _ in
            for round in 0..<80 {
                let count = round % 4 < 2 ? 10 : 100_000
                _ = await LoopbackClient.talk(to: local, within: .seconds(10)) { peer in
                    _ = peer.send(0..<count)
                    if round % 2 == 0 {
                        peer.finish()
                        _ = peer.receive()
                    }
                }
            }
            try? await eventually(within: .seconds(10), "every upload has ended") {
                uploads.withLock { $0.count } == 80
            }
        }
        let sorted = uploads.withLock { $0.sorted() }
        #expect(sorted == Array(repeating: 10, count: 40) + Array(repeating: 100_000, count: 40))
    }

    @Test func `a client that half-closes and reads late gets every byte`() async throws {
        let count = 8 << 20
        let app = try PatternServer(sending: count, in: scratch)
        let rig = try await ADBFixture([phone], in: scratch)
        try await withTunnel(to: app.port, on: rig) { local, _ in
            let received = await LoopbackClient.talk(to: local, within: .seconds(60), receiveBuffer: 65_536) { peer in
                _ = peer.send(0..<100_000)
                peer.finish()
                return peer.receive(stall: .init(after: 0, for: .seconds(2)))
            }
            #expect(received == PatternPeer.Received(count: count, end: .closed))
        }
    }

    @Test func `a phone that leaves in mid-stream resets the client, and a closed stream does not`() async throws {
        let forever = try LoopbackServer(in: scratch) { connection in
            while BlockingStream.send(Pattern.bytes(0..<65_536)[...], to: connection) { usleep(1_000) }
        }
        let app = try PatternServer(sending: 1_000, in: scratch)
        let rig = try await ADBFixture([phone], in: scratch)
        try await withTunnel(to: app.port, on: rig) { local, _ in
            let received = await LoopbackClient.talk(to: local, within: .seconds(10)) { peer in
                peer.finish()
                return peer.receive()
            }
            #expect(received == PatternPeer.Received(count: 1_000, end: .closed))
        }
        try await withTunnel(to: forever.port, on: rig) { local, table in
            let client = try await SocketStream.connect(to: .ipv4(INADDR_LOOPBACK, port: local))
            _ = try await client.receive(65_536)
            try await rig.detach(phone.serial)

            await #expect(throws: SocketStream.Failure(code: ECONNRESET)) { _ = try await client.receiveToEnd() }
            try await eventually("the reason is counted") {
                await table.list().first?.statistics.failures == ["linkLost": 1]
            }
        }
    }

    @Test func `200 connections at once carry every byte`() async throws {
        let app = try EchoServer(in: scratch)
        let rig = try await ADBFixture([phone], in: scratch)
        try await withTunnel(to: app.port, on: rig) { local, _ in
            let good = await withTaskGroup(of: Bool.self) { group in
                for _ in 0..<200 {
                    group.addTask { await LoopbackClient.echoes(65_536, from: local, within: .seconds(60)) }
                }
                return await group.reduce(into: 0) { $0 += $1 ? 1 : 0 }
            }
            #expect(good == 200)
        }
    }

    @Test func `a tunnel follows the phone through 20 replugs and restarts of the server`() async throws {
        let app = try EchoServer(in: scratch)
        let rig = try await ADBFixture([phone], in: scratch)
        try await withTunnel(to: app.port, on: rig) { local, _ in
            for round in 0..<20 {
                if round % 5 == 4 {
                    try await rig.restart()
                } else {
                    try await rig.detach(phone.serial)
                    #expect(await SocketStream.isReset(by: .ipv4(INADDR_LOOPBACK, port: local)))
                    try await rig.attach(phone)
                }
                #expect(await LoopbackClient.echoes(from: local, within: .seconds(2)))
            }
        }
    }
}
