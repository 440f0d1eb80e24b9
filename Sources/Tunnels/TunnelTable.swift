import Glibc
package import Logging
package import Model
import SystemIO

/// The list of tunnels; runs their listeners, and keeps their states and the state file current.
///
/// A tunnel is desired state: it listens from its creation on, also while its target is absent. Persistent tunnels are
/// saved before `create` returns, and keep their IDs and ports across restarts.
package actor TunnelTable {
    /// Relays the bytes of all tunnels; stopped at the end of `run()`.
    package nonisolated var relay: Relay { dependencies.relay }

    /// The streams without a local address. Their connections count towards the limit of the table.
    package nonisolated let streams: StreamTable

    var records: TunnelIndex
    var isRefreshing = false
    /// The number of possible changes of the tunnels' routes. A result with an older number is outdated.
    var routeGeneration: UInt64 = 0
    nonisolated let dependencies: TunnelDependencies

    private let store: TunnelStore?
    private var isStopping = false
    private var isChanging = false
    private var queue: [CheckedContinuation<Void, Never>] = []

    /// Loads the saved tunnels and listens on their addresses. `run()` serves them.
    ///
    /// - Parameters:
    ///   - planner: Plans the streams to a target.
    ///   - relay: Connects and relays; the table stops it. Nil for a new one.
    ///   - store: Persists tunnels; nil disables persistence.
    ///   - check: Checks the client's UID; nil uses the kernel's socket table.
    ///   - policy: Decides about each connection; nil allows all.
    ///   - limits: The limits of the table.
    ///   - clock: Measures the intervals in `limits`.
    ///   - logger: The operator's log; without it, nothing is logged.
    /// - Throws: `TunnelError.notRead` if saved tunnels exist and cannot be read.
    package init(
        planner: any TargetPlanner,
        relay: Relay? = nil,
        store: TunnelStore? = nil,
        check: ClientOwnerCheck? = nil,
        policy: (any ConnectionPolicy)? = nil,
        limits: TunnelLimits = TunnelLimits(),
        clock: any Clock<Duration> = PollerClock(),
        logger: Logger = Logger(label: "tunnels") { _ in SwiftLogNoOpLogHandler() }
    ) async throws(TunnelError) {
        self.store = store
        records = TunnelIndex(sockets: limits.sockets)
        dependencies = TunnelDependencies(
            planner: planner,
            relay: relay ?? Relay(),
            ownerCheck: check ?? ClientOwnerCheck(logger: logger),
            policy: policy,
            connectionLimit: TunnelConnectionLimiter(limit: limits.connections),
            limits: limits,
            clock: clock,
            logger: logger
        )
        streams = StreamTable(dependencies)
        do { try await restore() } catch {
            await dependencies.relay.stop()
            throw error
        }
    }

    /// Returns all tunnels in order of creation.
    package func list() -> [Tunnel] { records.inOrder.map(\.tunnel) }

    /// The endpoints that are targets of tunnels.
    package var endpoints: Set<EndpointID> {
        Set(list().compactMap { if case .endpoint(let id) = $0.spec.target { id } else { nil } })
    }

    /// Subscribes to tunnel events. The stream of a subscriber ends if 256 events are unread.
    package func events() -> AsyncStream<TunnelChange> { dependencies.feed.subscribe() }

    /// Creates a tunnel and saves it if it is persistent.
    ///
    /// A tunnel on the same local address is replaced and its connections are closed; `replaced` names it. With
    /// `noRebind`, or if the old tunnel is ephemeral, the call fails instead. An identical tunnel is returned
    /// unchanged.
    ///
    /// The owner is the requesting user, or the broker's own user if the requesting user is unknown. The holder is for
    /// `ConnectionPolicy`.
    /// - Throws: `TunnelError`; nothing has changed then.
    package func create(
        _ spec: TunnelSpec,
        owner: UInt32? = nil,
        holder: String? = nil
    ) async throws(TunnelError) -> Tunnel {
        let tunnels = try await create([spec], owner: owner, holder: holder)
        return tunnels[0]
    }

    /// Creates tunnels by the same rules: all of them or none.
    package func create(
        _ specs: [TunnelSpec],
        owner: UInt32? = nil,
        holder: String? = nil
    ) async throws(TunnelError) -> [Tunnel] {
        var tunnels: [Tunnel] = []
        for (id, tunnel) in try await make(specs, owner: owner, holder: holder, isEphemeral: false) {
            // A tunnel that was removed immediately cannot be returned.
            guard let tunnel else { throw .noSuchTunnel(id) }
            tunnels.append(tunnel)
        }
        return tunnels
    }

    /// Creates tunnels that exist until `removeEphemeral(_:)`: all of them or none. They are not saved and replace no
    /// tunnel.
    ///
    /// - Throws: `TunnelError`; nothing has changed then.
    package func createEphemeral(
        _ specs: [TunnelSpec],
        owner: UInt32? = nil,
        holder: String? = nil
    ) async throws(TunnelError) -> [Tunnel] {
        try await make(specs, owner: owner, holder: holder, isEphemeral: true).compactMap(\.tunnel)
    }

    /// Removes ephemeral tunnels. Unknown IDs are ignored.
    package func removeEphemeral(_ ids: Set<String>) async {
        await serialized { () async in
            await detach(ids.filter { records[$0]?.spec.persistent == false })
        }
    }

    /// Removes a tunnel. When it returns, its address is free and its connections are closed.
    ///
    /// - Throws: `TunnelError.noSuchTunnel`, `.notSaved`.
    package func remove(_ id: String) async throws(TunnelError) {
        try await serialized { () async throws(TunnelError) in
            guard let record = records[id] else { throw .noSuchTunnel(id) }
            if record.spec.persistent { try await store?.save(records.persisted(removing: [id])) }
            await detach([id])
        }
    }

    /// Closes the connections of the tunnels over revoked routes. The tunnels themselves stay.
    ///
    /// When it returns, none of these connections relays another byte. Pending dials over routes resolved before the
    /// call are dropped too.
    package func closeConnections(of ids: Set<String>, over routes: RevokedRoutes) async {
        let listeners = ids.compactMap { records[$0]?.listener }
        await withDiscardingTaskGroup { group in
            for listener in listeners { group.addTask { await listener.closeConnections(over: routes) } }
        }
    }

    /// Removes every tunnel, including ephemeral ones.
    ///
    /// - Returns: The number of removed tunnels.
    /// - Throws: `TunnelError.notSaved`.
    @discardableResult
    package func removeAll() async throws(TunnelError) -> Int {
        try await serialized { () async throws(TunnelError) in
            let ids = records.ids
            try await store?.save(records.persisted(removing: ids))
            await detach(ids)
            return ids.count
        }
    }

    private func restore() async throws(TunnelError) {
        guard let persisted = try await store?.load() else { return }
        records = TunnelIndex(persisted, dependencies: dependencies)
        for entry in persisted.tunnels {
            if !reopen(entry.id) { dependencies.events.continuation.yield((entry.id, .retry)) }
        }
        await refreshTargets()
    }

    /// Closes every tunnel and rejects new ones. Saved tunnels stay saved.
    func stop() async {
        isStopping = true
        await serialized { () async in
            await close(records.inOrder)
        }
        dependencies.feed.finish()
        await dependencies.relay.stop()
    }

    /// Tries to listen on a tunnel's local address again.
    ///
    /// - Returns: False if another retry is needed.
    func reopenListener(of id: String) async -> Bool {
        let isDone = await serialized { () async in isStopping || records[id]?.listener != nil || reopen(id) }
        if isDone { await refreshTarget(of: id) }
        return isDone
    }

    /// Opens a tunnel's listeners. Returns true also if the tunnel is gone.
    private func reopen(_ id: String) -> Bool {
        guard var record = records[id] else { return true }
        do {
            let listeners = try records.listen(on: record.spec.local, for: record.owner, port: record.port)
            let listener = TunnelListener(for: record, on: listeners, dependencies: dependencies)
            record.listener = listener
            record.state = .unresolved
            records[id] = record
            start(listener, of: id)
            return true
        } catch {
            set(id, .failed(reason: error.description))
            return false
        }
    }

    /// Runs changes one at a time, so that no change observes another one half done.
    private func serialized<Result, Failure: Error>(
        _ change: () async throws(Failure) -> Result
    ) async throws(Failure) -> Result {
        if isChanging { await withCheckedContinuation { queue.append($0) } }
        isChanging = true
        defer {
            // Ownership passes to the next change directly, so no other change can run in between.
            if queue.isEmpty { isChanging = false } else { queue.removeFirst().resume() }
        }
        return try await change()
    }

    /// Creates tunnels: all of them or none. A tunnel that was removed immediately is nil.
    private func make(
        _ specs: [TunnelSpec],
        owner: UInt32?,
        holder: String?,
        isEphemeral: Bool
    ) async throws(TunnelError) -> [(id: String, tunnel: Tunnel?)] {
        let made = try await serialized { () async throws(TunnelError) in
            guard !isStopping else { throw .stopping }
            let plans = try records.plan(
                specs,
                owner: owner ?? geteuid(),
                holder: holder,
                isEphemeral: isEphemeral,
                limit: dependencies.limits.tunnels
            )
            if plans.contains(where: { !$0.isUnchanged && $0.spec.persistent }) { try await store?.checkWritable() }
            return try await apply(plans)
        }
        let new = made.filter(\.isNew).map(\.id)
        for id in new { await refreshTarget(of: id) }
        await checkListeners(of: new)
        return made.map { one in
            var tunnel = records[one.id]?.tunnel
            tunnel?.replaced = one.replaced
            if one.isNew, let tunnel { dependencies.feed.send(.opened(tunnel)) }
            return (one.id, tunnel)
        }
    }

    /// Saves the planned tunnels, then closes the replaced ones and creates the new ones.
    private func apply(
        _ plans: [TunnelPlan]
    ) async throws(TunnelError) -> [(id: String, isNew: Bool, replaced: String?)] {
        let new = plans.filter { !$0.isUnchanged }
        guard !new.isEmpty else { return plans.map { ($0.old?.id ?? "", false, nil) } }
        let replaced = Set(new.compactMap { $0.old?.id })
        try await store?.save(records.persisted(removing: replaced, inserting: new))
        await detach(replaced)
        return plans.map { plan in
            if plan.isUnchanged, let old = plan.old { return (old.id, false, nil) }
            do throws(TunnelError) {
                let listeners =
                    plan.listeners.isEmpty
                    ? try records.listen(on: plan.spec.local, for: plan.owner) : plan.listeners
                return (insert(plan, listeners: listeners), true, plan.old?.id)
            } catch {
                // Another program took the address in the meantime. The tunnel is created as failed and tries again.
                let id = insert(plan, listeners: [])
                set(id, .failed(reason: error.description))
                dependencies.events.continuation.yield((id, .retry))
                return (id, true, plan.old?.id)
            }
        }
    }

    private func start(_ listener: TunnelListener, of id: String) {
        for address in listener.addresses where address.port != nil && !address.isLoopback {
            let place = address.isUnspecified ? "an address of this machine" : "this address"
            dependencies.logger.warning(
                """
                every client that reaches \(place) over the network can use the tunnel; listen on 127.0.0.1 to restrict \
                it to its owner
                """,
                metadata: ["tunnel": "\(id)", "address": "\(address)"]
            )
        }
        listener.start()
    }

    private func insert(_ plan: TunnelPlan, listeners: [Listener]) -> String {
        let entry = records.insert(plan, listeners: listeners, dependencies: dependencies)
        if let listener = entry.listener { start(listener, of: entry.id) }
        return entry.id
    }

    /// Removes tunnels from the table, closes them, and publishes the events.
    private func detach(_ ids: Set<String>) async {
        let detached = records.remove(ids)
        await close(detached)
        for record in detached { dependencies.feed.send(.removed(id: record.id)) }
    }

    /// Closes the listeners concurrently. The relay thread then handles their commands in one batch instead of one per
    /// loop iteration.
    private func close(_ records: [TunnelEntry]) async {
        let listeners = records.compactMap(\.listener)
        await withDiscardingTaskGroup { group in
            for listener in listeners { group.addTask { await listener.close() } }
        }
    }
}
