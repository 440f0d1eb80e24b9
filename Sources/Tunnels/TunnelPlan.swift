import FoundationEssentials
import Model
import SystemIO

/// A tunnel that is asked for, before anything has changed for it.
struct TunnelPlan {
    let spec: TunnelSpec
    /// The tunnel on its local address, which it replaces.
    let old: TunnelEntry?
    /// Whether the old one is the very same.
    let isThere: Bool
    /// Empty where the old one has the address.
    let listeners: [Listener]

    init(spec: TunnelSpec, old: TunnelEntry?, owner: UInt32, listeners: [Listener]) {
        self.spec = spec
        self.old = old
        self.listeners = listeners
        isThere = old.map { $0.spec == spec && $0.owner == owner && $0.door != nil } ?? false
    }

    /// As it is kept.
    func entry(id: String, _ owner: UInt32) -> PersistedTunnels.Entry {
        PersistedTunnels.Entry(id: id, spec: spec, owner: owner, port: listeners.first?.address.port, since: Date())
    }
}
