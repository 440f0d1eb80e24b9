import FoundationEssentials
import Glibc
import Model
import Samples
import ServiceLifecycle
import Synchronization
import SystemIO
import TestSupport
import Testing
import Tunnels

/// Creates tunnel tables with a fake resolver and a target on a missing phone.
struct TunnelTableFixture {
    let resolver = FakeResolver()
    let target = TunnelTarget.device(udid: Self.udid, port: 8_765)
    static let udid = UDID(Phones.one).unsafelyUnwrapped

    /// Makes the target one whose last probes failed, until a connection to it.
    func setAbsence(_ reason: String) {
        resolver.absence.withLock { [resolver] in
            $0 = TargetAbsence(DialError(.noRoute, reason)) { resolver.absence.withLock { $0 = nil } }
        }
    }

    func table(
        _ planner: any ConnectPlanner = NetworkPlanner(),
        store: TunnelStore? = nil,
        limits: TunnelLimits = TunnelLimits(listenRetryInterval: .milliseconds(20))
    ) async throws -> TunnelTable {
        try await TunnelTable(
            planner: RoutePlanner(resolver: resolver, planner: planner),
            relay: Relay(idle: .milliseconds(150)),
            store: store,
            limits: limits,
            logger: .quiet
        )
    }

    /// Runs a table during a test and stops it gracefully afterwards, as SIGTERM does.
    func running(_ table: TunnelTable, _ body: () async throws -> Void) async throws {
        let group = ServiceGroup(services: [table], logger: .quiet)
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
    ) -> TunnelSpec { TunnelSpec(local: local, target: .device(udid: Self.udid, port: port), noRebind: noRebind) }
}

/// A resolver that returns a configurable result.
final class FakeResolver: RouteResolver {
    private let answer: Mutex<Result<[Route], DialError>>
    /// The routes that are found and may not be dialed.
    let refused = Mutex<[Route]>([])
    /// Not nil while the last probes of the target failed.
    let absence = Mutex<TargetAbsence?>(nil)

    init(_ routes: [Route] = []) { answer = Mutex(.success(routes)) }

    func set(_ result: Result<[Route], DialError>) { answer.withLock { $0 = result } }

    func resolve(_ target: TunnelTarget) async throws(DialError) -> ResolvedTarget {
        ResolvedTarget(
            try answer.withLock { $0 }.get(),
            refused: refused.withLock { $0 },
            absence: absence.withLock { $0 }
        )
    }
}

/// Plans connections of which the first one tells if something listens.
struct TrialPlanner: ConnectPlanner {
    let isAllowed: Bool
    let open: @Sendable () async throws -> Connection

    func plan(for route: Route) -> ConnectPlan {
        ConnectPlan(route: route, opening: open).with(listenerCheck: .connection { isAllowed })
    }
}

/// The open descriptors and running threads of this process.
enum ThisProcess {
    static func descriptors() throws -> Int {
        try FileManager.default.contentsOfDirectory(atPath: "/proc/self/fd").count
    }
    static func threads() throws -> Int { try FileManager.default.contentsOfDirectory(atPath: "/proc/self/task").count }
}

/// A temporary directory, removed on deallocation.
final class Scratch: Sendable {
    let path: String

    init() {
        path = FileManager.default.temporaryDirectory.path() + "patchbay-\(UInt32.random(in: 0...UInt32.max))"
        mkdir(path, 0o700)
    }

    deinit { try? FileManager.default.removeItem(atPath: path) }
}
