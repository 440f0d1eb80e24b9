import FoundationEssentials
import Glibc
package import Model
import SystemIO

/// One tunnel of a table: its specification, its listener and its state.
struct TunnelEntry: Sendable {
    let id: String
    let spec: TunnelSpec
    /// The UID of the user who created the tunnel.
    let owner: UInt32
    /// The holder of leases that created the tunnel, for `ConnectionPolicy`; nil for the owner.
    let holder: String?
    let since: Date
    let metrics: TunnelMetrics
    /// Nil while the broker cannot listen on the local address.
    var listener: TunnelListener?
    var state: Tunnel.State
    /// The error that stops the listening socket from accepting clients; nil if it accepts clients.
    var acceptError: String?
    /// The routes of the target when it was last present.
    var routes: [Route?] = []
    /// The reason why the target refuses connections at these routes; nil until the first refusal, and after a success.
    var refusal: String?
    /// The port assigned to `tcp:0` in an earlier run.
    var port: UInt16?

    /// Creates a tunnel of a plan or of the state file. Without sockets it does not listen yet.
    init(
        _ persisted: PersistedTunnels.Entry,
        holder: String? = nil,
        sockets: [Listener] = [],
        dependencies: TunnelDependencies
    ) {
        id = persisted.id
        spec = persisted.spec
        owner = persisted.owner ?? geteuid()
        self.holder = holder
        since = persisted.createdAt
        metrics = dependencies.metrics(of: persisted.id, for: holder)
        port = persisted.port
        state = sockets.isEmpty ? .failed(reason: "it is being restored") : .unresolved
        if !sockets.isEmpty { listener = TunnelListener(for: self, on: sockets, dependencies: dependencies) }
    }

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

extension Tunnel.State {
    /// The state of a tunnel that listens, before the first result of the resolver.
    static let unresolved = Self.waiting(reason: "its target has not been resolved yet")
}

/// A change of a tunnel, in order of occurrence.
package enum TunnelChange: Hashable, Sendable {
    case opened(Tunnel)
    /// The tunnel's state changed.
    case changed(Tunnel)
    /// A client connected and was reset: the dial failed, or the target closed the stream abnormally.
    case connectionFailed(tunnel: String, DialError)
    /// The tunnel's connections are closed and its local address is free.
    case removed(id: String)
}
