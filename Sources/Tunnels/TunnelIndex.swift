import FoundationEssentials
import Model
import SystemIO

/// The tunnels of a table: their IDs, their local addresses, and the content of the state file.
///
/// A tunnel owns its local address until its removal, also while the broker cannot listen on the address.
struct TunnelIndex: Sendable {
    private var entries: [String: TunnelEntry] = [:]
    /// The number of the next tunnel.
    private var next: UInt64 = 1

    /// The rules for unix sockets.
    private let sockets: UnixSocketReachability

    init(sockets: UnixSocketReachability = UnixSocketReachability()) { self.sockets = sockets }

    /// Restores the tunnels of the state file.
    init(_ persisted: PersistedTunnels, dependencies: TunnelDependencies) {
        sockets = dependencies.limits.sockets
        for entry in persisted.tunnels { entries[entry.id] = TunnelEntry(entry, dependencies: dependencies) }
        next = max(persisted.next, (entries.keys.map(Self.number).max() ?? 0) &+ 1)
    }

    subscript(id: String) -> TunnelEntry? {
        get { entries[id] }
        set { entries[id] = newValue }
    }

    var ids: Set<String> { Set(entries.keys) }

    /// The tunnels in order of creation.
    var inOrder: [TunnelEntry] { entries.values.sorted { Self.number($0.id) < Self.number($1.id) } }

    /// Plans the creation of tunnels and opens their listeners. The records do not change.
    ///
    /// An old tunnel on the same address keeps the address until its plan is carried out.
    ///
    /// - Parameters:
    ///   - specs: The requested tunnels.
    ///   - owner: The UID of the requesting user.
    ///   - holder: The holder of leases that requests the tunnels; nil for the owner.
    ///   - isEphemeral: True if the tunnels are not saved and replace no tunnel.
    ///   - limit: The maximum number of tunnels.
    /// - Returns: One plan for each specification.
    /// - Throws: `TunnelError`; the opened listeners are then closed.
    func plan(
        _ specs: [TunnelSpec],
        owner: UInt32,
        holder: String? = nil,
        isEphemeral: Bool,
        limit: Int
    ) throws(TunnelError) -> [TunnelPlan] {
        guard entries.count + specs.count <= limit else { throw .tooMany(limit: limit) }
        for case .device(let route) in specs.map(\.target) where route.socket == .port(0) {
            throw .badTarget("port 0 of \(route.udid) cannot be connected to; give the port that the app listens on")
        }
        var plans: [TunnelPlan] = []
        for var spec in specs {
            if isEphemeral { spec.persistent = false }
            let old = tunnel(listeningOn: spec.local)
            if let old, isEphemeral || spec.noRebind || !old.spec.persistent {
                throw .taken(spec.local, by: old.id, leadsThere: old.spec.target == spec.target)
            }
            if let old, plans.contains(where: { $0.old?.id == old.id }) { throw .inUse(spec.local) }
            let listeners = old?.listener == nil ? try listen(on: spec.local, for: owner) : []
            plans.append(TunnelPlan(spec: spec, owner: owner, holder: holder, old: old, listeners: listeners))
        }
        return plans
    }

    /// Adds a planned tunnel under a new ID. The tunnel listens unless `listeners` is empty.
    mutating func insert(_ plan: TunnelPlan, listeners: [Listener], dependencies: TunnelDependencies) -> TunnelEntry {
        let persisted = plan.persisted(id: Self.id(next))
        let entry = TunnelEntry(persisted, holder: plan.holder, sockets: listeners, dependencies: dependencies)
        next += 1
        entries[entry.id] = entry
        return entry
    }

    /// Removes tunnels and returns them. Unknown IDs are ignored.
    mutating func remove(_ ids: Set<String>) -> [TunnelEntry] { ids.compactMap { entries.removeValue(forKey: $0) } }

    /// Returns the content of the state file after a removal and the insertion of planned tunnels.
    func persisted(removing removed: Set<String> = [], inserting plans: [TunnelPlan] = []) -> PersistedTunnels {
        let kept = inOrder.filter { $0.spec.persistent && !removed.contains($0.id) }.map(\.persisted)
        let added = plans.enumerated().map { $1.persisted(id: Self.id(next + UInt64($0))) }
        return PersistedTunnels(
            next: next + UInt64(plans.count),
            tunnels: kept + added.filter(\.spec.persistent)
        )
    }

    /// Listens on an address. The error names the tunnel that is in the way: 8080 and 127.0.0.1:8080 overlap, for
    /// example.
    func listen(on local: ListenAddress, for owner: UInt32, port: UInt16? = nil) throws(TunnelError) -> [Listener] {
        do {
            return try TunnelSocketBinder.listen(on: local, access: sockets.access(to: local, for: owner), port: port)
        } catch .inUse(let local) {
            if case .tcp(_, let asked) = local, let wanted = asked == 0 ? port : asked {
                let other = entries.values.first {
                    $0.listener?.addresses.contains { $0.port == wanted } == true
                }
                if let other { throw .taken(local, by: other.id) }
                throw .inUse(asked == 0 ? .tcp(host: nil, port: wanted) : local)
            }
            throw .inUse(local)
        }
    }

    /// The tunnel on a local address; nil for `tcp:0`.
    private func tunnel(listeningOn local: ListenAddress) -> TunnelEntry? {
        if case .tcp(_, 0) = local { return nil }
        return entries.values.first { $0.local == local }
    }

    private static func id(_ number: UInt64) -> String { "t\(number)" }

    private static func number(_ id: String) -> UInt64 { PersistedTunnels.number(of: id) ?? 0 }
}

/// A requested tunnel before its creation.
struct TunnelPlan {
    let spec: TunnelSpec
    /// The UID of the requesting user.
    let owner: UInt32
    /// The holder of leases that requested the tunnel; nil for the owner.
    let holder: String?
    /// The tunnel that it replaces: the one on the same local address.
    let old: TunnelEntry?
    /// Empty if the old tunnel holds the address.
    let listeners: [Listener]

    /// True if the old tunnel equals the requested one.
    var isUnchanged: Bool {
        guard let old else { return false }
        return old.spec == spec && old.owner == owner && old.holder == holder && old.listener != nil
    }

    /// The tunnel as saved on disk.
    fileprivate func persisted(id: String) -> PersistedTunnels.Entry {
        PersistedTunnels.Entry(id: id, spec: spec, owner: owner, port: listeners.first?.address.port, createdAt: Date())
    }
}
