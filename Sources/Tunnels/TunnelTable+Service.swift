import FoundationEssentials
import Logging
import Model
import ServiceLifecycle
import Synchronization
import SystemIO

/// The running table: serves listeners, retries local addresses, and keeps the states current.
extension TunnelTable: Service {
    /// Serves every tunnel until graceful shutdown, then closes all listeners and connections.
    package func run() async throws {
        await withDiscardingTaskGroup { group in
            for await job in jobs.stream.cancelOnGracefulShutdown() {
                group.addTask { await self.perform(job) }
            }
            await stop()
            group.cancelAll()
        }
    }

    /// Resolves the targets of all tunnels again. Called after devices or endpoints have changed.
    ///
    /// Calls during a refresh cause one more refresh, however many there are.
    package func refreshTargets() async {
        routeGeneration.increment()
        guard !isRefreshing else { return }
        isRefreshing = true
        defer { isRefreshing = false }
        var done: UInt64
        repeat {
            done = routeGeneration.current
            for id in records.keys { await refreshTarget(of: id) }
        } while done != routeGeneration.current
    }

    /// Resolves a tunnel's target and sets its state accordingly.
    func refreshTarget(of id: String) async {
        guard let record = records[id], record.listener != nil else { return }
        let asked = routeGeneration.current
        let state: Tunnel.State
        var isForbidden = false
        do {
            let routes = try await dialer.resolver.routes(to: record.spec.target)
            state =
                routes.isEmpty
                ? .waiting(reason: TargetDialer.noRoute(to: record.spec.target).description) : .active
        } catch {
            state = .waiting(reason: error.description)
            isForbidden = error.reason == .forbidden
        }
        // An older result must not overwrite a newer one. The newer refresh sets the state.
        guard asked == routeGeneration.current, records[id]?.acceptError == nil else { return }
        set(id, state)
        // The revoked route may still have open connections.
        if isForbidden { await record.listener?.closeNetworkConnections() }
    }

    /// Sets a tunnel's state and publishes a change.
    func set(_ id: String, _ state: Tunnel.State) {
        guard let old = records[id]?.state, old != state else { return }
        records[id]?.state = state
        if let tunnel = records[id]?.tunnel { feed.send(.changed(tunnel)) }
    }

    private nonisolated func perform(_ job: Job) async {
        switch job {
        case .serve(let listener):
            await listener.serve { await self.handle($0, from: listener) }
        case .retry(let id):
            repeat {
                guard (try? await clock.sleep(for: limits.listenRetryInterval)) != nil else { return }
            } while await !retry(id)
        }
    }

    /// Sets the tunnel's state from a dial, which is more reliable than the resolver. A result from before a route
    /// change is ignored.
    private func handle(_ result: TunnelListener.DialResult, from listener: TunnelListener) async {
        let id = listener.id
        guard records[id]?.listener === listener else { return }
        switch result {
        case .listening(let acceptError?):
            records[id]?.acceptError = acceptError
            set(id, .failed(reason: "it accepts no clients: \(acceptError)"))
        case .listening(nil):
            records[id]?.acceptError = nil
            await refreshTarget(of: id)
        case .connected:
            if records[id]?.acceptError == nil { set(id, .active) }
        case .failed(let failure, let count):
            let isAbsent = [.deviceAbsent, .usbmuxdAbsent, .noRoute].contains(failure.reason)
            guard isAbsent, count == routeGeneration.current, records[id]?.acceptError == nil else { return }
            set(id, .waiting(reason: failure.description))
        }
    }
}

/// The table's entry for one tunnel.
struct TunnelEntry: Sendable {
    let id: String
    let spec: TunnelSpec
    /// The UID of the user who created the tunnel.
    let owner: UInt32
    let since: Date
    let metrics: TunnelMetrics
    /// Nil while the broker cannot listen on the local address.
    var listener: TunnelListener?
    var state: Tunnel.State
    /// The error that stops the listening socket from accepting clients; nil if it accepts clients.
    var acceptError: String?
    /// The port assigned to `tcp:0` in an earlier run.
    var port: UInt16?

    var tunnel: Tunnel {
        Tunnel(
            id: id,
            spec: spec,
            owner: owner,
            state: state,
            listenAddresses: bound,
            statistics: metrics.statistics,
            createdAt: since
        )
    }

    var persisted: PersistedTunnels.Entry {
        PersistedTunnels.Entry(id: id, spec: spec, owner: owner, port: chosenPort, createdAt: since)
    }

    /// The local address with its actual port.
    var local: ListenAddress {
        guard case .tcp(let host, 0) = spec.local, let chosenPort else { return spec.local }
        return .tcp(host: host, port: chosenPort)
    }

    private var bound: [ListenAddress] {
        (listener?.addresses ?? []).map { address in
            address.port.map { .tcp(host: address.host, port: $0) } ?? .unix(path: address.host)
        }
    }

    private var chosenPort: UInt16? {
        guard case .tcp(_, 0) = spec.local else { return nil }
        return listener?.addresses.first?.port ?? port
    }
}

/// Counts possible changes of the tunnels' routes. A result with an older count is outdated.
final class RouteGeneration: Sendable {
    private let counter = Atomic<UInt64>(0)

    var current: UInt64 { counter.load(ordering: .acquiring) }

    func increment() { counter.wrappingAdd(1, ordering: .releasing) }
}

/// A requested tunnel before its creation.
struct TunnelPlan {
    let spec: TunnelSpec
    /// The tunnel that it replaces: the one on the same local address.
    let old: TunnelEntry?
    /// True if the old tunnel equals the requested one.
    let isUnchanged: Bool
    /// Empty if the old tunnel holds the address.
    let listeners: [Listener]

    init(spec: TunnelSpec, old: TunnelEntry?, owner: UInt32, listeners: [Listener]) {
        self.spec = spec
        self.old = old
        self.listeners = listeners
        isUnchanged = old.map { $0.spec == spec && $0.owner == owner && $0.listener != nil } ?? false
    }

    /// The tunnel as saved on disk.
    func persisted(id: String, owner: UInt32) -> PersistedTunnels.Entry {
        PersistedTunnels.Entry(id: id, spec: spec, owner: owner, port: listeners.first?.address.port, createdAt: Date())
    }
}
