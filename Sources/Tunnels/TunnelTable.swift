import FoundationEssentials
import Glibc
package import Logging
package import Model
package import SystemIO

/// The list of tunnels; owns their listeners, state and persistence.
///
/// A tunnel is desired state: it listens from its creation on, also while its target is absent. Persistent tunnels are
/// saved before `create` returns, and keep their IDs and ports across restarts.
package actor TunnelTable {
    /// Work that the table passes to `run()`.
    enum Job: Sendable {
        case serve(TunnelListener)
        /// Try again to listen on a tunnel's local address.
        case retry(String)
    }

    /// Relays the bytes of all tunnels; stopped at the end of `run()`.
    package nonisolated let relay: Relay

    var records: [String: TunnelEntry] = [:]
    var isRefreshing = false
    nonisolated let routeGeneration = RouteGeneration()
    let dialer: TargetDialer
    let feed = Broadcast<TunnelEvent>(slow: .ends(after: 256))
    nonisolated let limits: TunnelLimits
    nonisolated let clock: any Clock<Duration>
    nonisolated let jobs = AsyncStream.makeStream(of: Job.self)
    nonisolated let logger: Logger

    private let store: TunnelStore?
    private let check: ClientOwnerCheck
    private let connectionLimit: ConnectionLimit
    private var next: UInt64 = 1
    private var isStopping = false
    private var isChanging = false
    private var queue: [CheckedContinuation<Void, Never>] = []

    /// Loads the saved tunnels and listens on their addresses. `run()` serves them.
    ///
    /// - Parameters:
    ///   - resolver: Resolves a target for each connection.
    ///   - dialer: Dials the resolved routes.
    ///   - store: Persists tunnels; nil disables persistence.
    ///   - check: Checks the client's UID; nil uses the kernel's socket table.
    ///   - limits: The limits of the table.
    ///   - idle: The idle timeout of `Relay`.
    ///   - clock: Measures the intervals in `limits`.
    ///   - logger: The operator's log.
    /// - Throws: `TunnelError.notRead` if saved tunnels exist and cannot be read.
    package init(
        resolver: any RouteResolver,
        dialer: any Dialer,
        store: TunnelStore?,
        check: ClientOwnerCheck? = nil,
        limits: TunnelLimits = TunnelLimits(),
        idle: Duration = .seconds(5),
        clock: any Clock<Duration> = PollerClock(),
        logger: Logger
    ) async throws(TunnelError) {
        self.dialer = TargetDialer(resolver: resolver, dialer: dialer)
        self.store = store
        self.check = check ?? ClientOwnerCheck(logger: logger)
        self.limits = limits
        self.clock = clock
        self.logger = logger
        relay = Relay(idle: idle)
        connectionLimit = ConnectionLimit(limit: limits.connections)
        do { try await restore() } catch {
            await relay.stop()
            throw error
        }
    }

    /// Returns all tunnels in order of creation.
    package func list() -> [Tunnel] {
        records.values.map(\.tunnel).sorted { number($0.id) < number($1.id) }
    }

    /// Subscribes to tunnel events. The stream of a subscriber ends if 256 events are unread.
    package func events() -> AsyncStream<TunnelEvent> { feed.subscribe() }

    /// Creates a tunnel and saves it if it is persistent.
    ///
    /// A tunnel on the same local address is replaced and its connections are closed; `replaced` names it. With
    /// `noRebind`, or if the old tunnel is ephemeral, the call fails instead. An identical tunnel is returned
    /// unchanged.
    ///
    /// The owner is the requesting user, or the broker's own user if the requesting user is unknown.
    /// - Throws: `TunnelError`; nothing has changed then.
    package func create(_ spec: TunnelSpec, owner: UInt32? = nil) async throws(TunnelError) -> Tunnel {
        let tunnels = try await create([spec], owner: owner)
        return tunnels[0]
    }

    /// Creates tunnels by the same rules: all of them or none.
    package func create(_ specs: [TunnelSpec], owner: UInt32? = nil) async throws(TunnelError) -> [Tunnel] {
        let owner = owner ?? geteuid()
        let made = try await serialized { () async throws(TunnelError) in
            try check(specs)
            var plans: [TunnelPlan] = []
            for spec in specs {
                let old = tunnel(listeningOn: spec.local)
                if let old, spec.noRebind || !old.spec.persistent { throw .taken(spec.local, by: old.id) }
                if let old, plans.contains(where: { $0.old?.id == old.id }) { throw .inUse(spec.local) }
                // The old tunnel keeps its address until the new ones are saved.
                let listeners = old?.listener == nil ? try listen(spec.local) : []
                plans.append(TunnelPlan(spec: spec, old: old, owner: owner, listeners: listeners))
            }
            if plans.contains(where: { !$0.isUnchanged && $0.spec.persistent }) { try await store?.checkWritable() }
            return try await apply(plans, owner: owner)
        }
        for one in made where one.isNew { await refreshTarget(of: one.id) }
        let tunnels = made.compactMap { one in
            var tunnel = records[one.id]?.tunnel
            tunnel?.replaced = one.replaced
            if one.isNew, let tunnel { feed.send(.opened(tunnel)) }
            return tunnel
        }
        // A tunnel that was removed immediately cannot be returned.
        guard tunnels.count == made.count else { throw .noSuchTunnel(made.first { records[$0.id] == nil }?.id ?? "") }
        return tunnels
    }

    /// Creates tunnels that exist until `removeEphemeral(_:)`: all of them or none. They are not saved and replace no
    /// tunnel.
    ///
    /// - Throws: `TunnelError`; nothing has changed then.
    package func createEphemeral(_ specs: [TunnelSpec], owner: UInt32? = nil) async throws(TunnelError) -> [Tunnel] {
        let ids = try await serialized { () async throws(TunnelError) in
            try check(specs)
            var opened: [(TunnelSpec, [Listener])] = []
            for spec in specs {
                var ephemeral = spec
                ephemeral.persistent = false
                if let old = tunnel(listeningOn: spec.local) { throw .taken(spec.local, by: old.id) }
                // If a later address fails, these listeners close when they go out of scope.
                opened.append((ephemeral, try listen(spec.local)))
            }
            try await save(next: next + UInt64(specs.count))
            return opened.map { spec, listeners in insert(spec, owner: owner ?? geteuid(), listeners: listeners) }
        }
        for id in ids { await refreshTarget(of: id) }
        let tunnels = ids.compactMap { records[$0]?.tunnel }
        for tunnel in tunnels { feed.send(.opened(tunnel)) }
        return tunnels
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
            if record.spec.persistent { try await save(without: [id]) }
            await detach([id])
        }
    }

    /// Closes the network connections of the tunnels. USB connections and the tunnels themselves stay.
    ///
    /// When it returns, none of these connections relays another byte. Pending dials over routes resolved before the
    /// call are dropped too.
    package func closeNetworkConnections(of ids: Set<String>) async {
        let listeners = ids.compactMap { records[$0]?.listener }
        await withDiscardingTaskGroup { group in
            for listener in listeners { group.addTask { await listener.closeNetworkConnections() } }
        }
    }

    /// Removes every tunnel, including ephemeral ones.
    ///
    /// - Returns: The number of removed tunnels.
    /// - Throws: `TunnelError.notSaved`.
    @discardableResult
    package func removeAll() async throws(TunnelError) -> Int {
        try await serialized { () async throws(TunnelError) in
            let ids = Set(records.keys)
            try await save(without: ids)
            await detach(ids)
            return ids.count
        }
    }

    private func restore() async throws(TunnelError) {
        guard let persisted = try await store?.load() else { return }
        next = max(persisted.next, (persisted.tunnels.map { number($0.id) }.max() ?? 0) &+ 1)
        for entry in persisted.tunnels {
            records[entry.id] = TunnelEntry(
                id: entry.id,
                spec: entry.spec,
                owner: entry.owner ?? geteuid(),
                since: entry.createdAt,
                metrics: makeMetrics(entry.id),
                listener: nil,
                state: .failed(reason: "it is being restored"),
                port: entry.port
            )
            if !reopen(entry.id) { jobs.continuation.yield(.retry(entry.id)) }
        }
        await refreshTargets()
    }

    /// Closes every tunnel and rejects new ones. Saved tunnels stay saved.
    func stop() async {
        isStopping = true
        await serialized { () async in
            await close(records.values)
        }
        feed.finish()
        await relay.stop()
    }

    /// Tries to listen on a tunnel's local address again.
    ///
    /// - Returns: False if another retry is needed.
    func retry(_ id: String) async -> Bool {
        let isDone = await serialized { () async in isStopping || records[id]?.listener != nil || reopen(id) }
        if isDone { await refreshTarget(of: id) }
        return isDone
    }

    /// Opens a tunnel's listeners. Returns true also if the tunnel is gone.
    private func reopen(_ id: String) -> Bool {
        guard var record = records[id] else { return true }
        do {
            let listeners = try listen(record.spec.local, port: record.port)
            let listener = makeListener(for: record, on: listeners)
            record.listener = listener
            record.state = .waiting(reason: "its target has not been resolved yet")
            records[id] = record
            jobs.continuation.yield(.serve(listener))
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

    private func check(_ specs: [TunnelSpec]) throws(TunnelError) {
        guard !isStopping else { throw .stopping }
        guard records.count + specs.count <= limits.tunnels else { throw .tooMany(limit: limits.tunnels) }
        for case .device(let udid, 0) in specs.map(\.target) {
            throw .badTarget("port 0 of \(udid) cannot be connected to; give the port that the app listens on")
        }
    }

    /// The tunnel on a local address; nil for `tcp:0`.
    private func tunnel(listeningOn local: ListenAddress) -> TunnelEntry? {
        if case .tcp(_, 0) = local { return nil }
        return records.values.first { $0.local == local }
    }

    /// Listens on an address. The error names a tunnel of this table that is in the way: 8080 and 127.0.0.1:8080
    /// overlap, for example.
    private func listen(_ local: ListenAddress, port: UInt16? = nil) throws(TunnelError) -> [Listener] {
        do {
            return try TunnelBinding.listen(on: local, port: port)
        } catch .inUse(let local) {
            if case .tcp(_, let asked) = local, let wanted = asked == 0 ? port : asked {
                let other = records.values.first {
                    $0.listener?.addresses.contains { $0.port == wanted } == true
                }
                if let other { throw .taken(local, by: other.id) }
                throw .inUse(asked == 0 ? .tcp(host: nil, port: wanted) : local)
            }
            throw .inUse(local)
        }
    }

    /// Saves the planned tunnels, then closes the replaced ones and creates the new ones.
    private func apply(
        _ plans: [TunnelPlan],
        owner: UInt32
    ) async throws(TunnelError) -> [(id: String, isNew: Bool, replaced: String?)] {
        let new = plans.filter { !$0.isUnchanged }
        guard !new.isEmpty else { return plans.map { ($0.old?.id ?? "", false, nil) } }
        let replaced = Set(new.compactMap { $0.old?.id })
        let entries = new.enumerated().map { $1.persisted(id: "t\(next + UInt64($0))", owner: owner) }
        try await save(
            without: replaced,
            with: entries.filter(\.spec.persistent),
            next: next + UInt64(new.count)
        )
        await detach(replaced)
        return plans.map { plan in
            if plan.isUnchanged, let old = plan.old { return (old.id, false, nil) }
            do throws(TunnelError) {
                let listeners = plan.listeners.isEmpty ? try listen(plan.spec.local) : plan.listeners
                return (insert(plan.spec, owner: owner, listeners: listeners), true, plan.old?.id)
            } catch {
                // Another program took the address in the meantime. The tunnel is created as failed and tries again.
                let id = insert(plan.spec, owner: owner, listeners: [])
                set(id, .failed(reason: error.description))
                jobs.continuation.yield(.retry(id))
                return (id, true, plan.old?.id)
            }
        }
    }

    private func insert(_ spec: TunnelSpec, owner: UInt32, listeners: [Listener]) -> String {
        let id = "t\(next)"
        next += 1
        var record = TunnelEntry(
            id: id,
            spec: spec,
            owner: owner,
            since: Date(),
            metrics: makeMetrics(id),
            listener: nil,
            state: .waiting(reason: "its target has not been resolved yet"),
            port: nil
        )
        if !listeners.isEmpty { record.listener = makeListener(for: record, on: listeners) }
        records[id] = record
        if let listener = record.listener { jobs.continuation.yield(.serve(listener)) }
        return id
    }

    /// Removes tunnels from the table, closes them, and publishes the events.
    private func detach(_ ids: Set<String>) async {
        let detached = ids.compactMap { records.removeValue(forKey: $0) }
        await close(detached)
        for record in detached { feed.send(.removed(id: record.id)) }
    }

    /// Closes the listeners concurrently. The relay thread then handles their commands in one batch instead of one per
    /// loop iteration.
    private func close(_ records: some Collection<TunnelEntry>) async {
        let listeners = records.compactMap(\.listener)
        await withDiscardingTaskGroup { group in
            for listener in listeners { group.addTask { await listener.close() } }
        }
    }

    private func save(
        without removed: Set<String> = [],
        with entries: [PersistedTunnels.Entry] = [],
        next: UInt64? = nil
    ) async throws(TunnelError) {
        var persisted = PersistedTunnels()
        persisted.next = next ?? self.next
        persisted.tunnels = records.values
            .filter { $0.spec.persistent && !removed.contains($0.id) }.map(\.persisted)
            .sorted { number($0.id) < number($1.id) }
        persisted.tunnels += entries
        try await store?.save(persisted)
    }

    private func makeMetrics(_ id: String) -> TunnelMetrics {
        TunnelMetrics(id: id, connectionLimit: connectionLimit, feed: feed)
    }

    private func makeListener(for record: TunnelEntry, on listeners: [Listener]) -> TunnelListener {
        TunnelListener(
            id: record.id,
            authorizer: ClientAuthorizer(
                spec: record.spec,
                owner: record.owner,
                check: check,
                inspector: ClientInspector(limits: limits.inspection, clock: clock)
            ),
            listeners: listeners,
            metrics: record.metrics,
            dialer: dialer,
            relay: relay,
            routeGeneration: routeGeneration,
            limits: limits,
            clock: clock,
            logger: logger
        )
    }

    private func number(_ id: String) -> UInt64 { PersistedTunnels.number(of: id) ?? 0 }
}
