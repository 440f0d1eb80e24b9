import FoundationEssentials
import Glibc
import Logging
import Model
import ServiceLifecycle
import SystemIO
import Testing
import Tunnels

/// Creates tunnel tables with a fake resolver and a target on a missing phone.
struct TunnelTableFixture {
    let resolver = FakeResolver()
    let target = TunnelTarget.device(udid: Self.udid, port: 8_765)
    static let udid = UDID("00008030-001A2B3C4D5E6F70").unsafelyUnwrapped

    func table(
        _ dialer: any Dialer = LANDialer(),
        store: TunnelStore? = nil,
        limits: TunnelLimits = TunnelLimits(listenRetryInterval: .milliseconds(20))
    ) async throws -> TunnelTable {
        try await TunnelTable(
            resolver: resolver,
            dialer: dialer,
            store: store,
            limits: limits,
            idle: .milliseconds(150),
            logger: Self.quiet
        )
    }

    static let quiet = Logger(label: "test", factory: { _ in SwiftLogNoOpLogHandler() })

    /// Runs a table during a test and stops it gracefully afterwards, as SIGTERM does.
    func running(_ table: TunnelTable, _ body: () async throws -> Void) async throws {
        let group = ServiceGroup(services: [table], logger: Self.quiet)
        async let ended: Void = group.run()
        do {
            try await body()
        } catch {
            await group.triggerGracefulShutdown()
            throw error
        }
        await group.triggerGracefulShutdown()
        try await ended
    }

    func address(_ tunnel: Tunnel) throws -> SocketAddress {
        switch try #require(tunnel.listenAddresses.first) {
        case .tcp(let host, let port): try #require(SocketAddress(numeric: host ?? "127.0.0.1", port: port))
        case .unix(let path): .unix(path: path)
        }
    }

    static func host(_ local: ListenAddress) -> String? {
        guard case .tcp(let host, _) = local else { return nil }
        return host
    }

    static func port(_ local: ListenAddress) -> UInt16 {
        guard case .tcp(_, let port) = local else { return 0 }
        return port
    }

    func spec(
        _ local: ListenAddress = .tcp(host: nil, port: 0),
        port: UInt16 = 8_765,
        noRebind: Bool = false
    ) -> TunnelSpec {
        TunnelSpec(local: local, target: .device(udid: Self.udid, port: port), noRebind: noRebind)
    }
}
