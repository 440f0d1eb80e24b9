import FoundationEssentials
import Model
import SystemIO

/// One tunnel as its table knows it.
struct TunnelEntry: Sendable {
    let id: String
    let spec: TunnelSpec
    /// The user who asked for it.
    let owner: UInt32
    let since: Date
    let tally: TunnelMetrics
    /// Nil while the local address is not to be had.
    var door: TunnelListener?
    var state: Tunnel.State
    /// Why its listening socket takes no clients; nil where it does.
    var fault: String?
    /// The port that `tcp:0` had in an earlier run.
    var port: UInt16?

    var tunnel: Tunnel {
        Tunnel(
            id: id,
            spec: spec,
            owner: owner,
            state: state,
            bound: bound,
            statistics: tally.statistics,
            since: since
        )
    }

    var entry: PersistedTunnels.Entry {
        PersistedTunnels.Entry(id: id, spec: spec, owner: owner, port: chosenPort, since: since)
    }

    /// The address with the port that it really has.
    var local: ListenAddress {
        guard case .tcp(let host, 0) = spec.local, let chosenPort else { return spec.local }
        return .tcp(host: host, port: chosenPort)
    }

    private var bound: [ListenAddress] {
        (door?.addresses ?? []).map { address in
            address.port.map { .tcp(host: address.host, port: $0) } ?? .unix(path: address.host)
        }
    }

    private var chosenPort: UInt16? {
        guard case .tcp(_, 0) = spec.local else { return nil }
        return door?.addresses.first?.port ?? port
    }
}
