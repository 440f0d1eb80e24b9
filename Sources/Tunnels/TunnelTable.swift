import FoundationEssentials
import Glibc
package import Logging
package import Model
package import SystemIO

/// The one list of tunnels, and what keeps them standing.
///
/// A tunnel is desired state: it listens from its creation on, whether or not its target is there. Kept tunnels are on the
/// disk before anybody is told that they stand, and stand again after a restart, with their ids and ports.
package actor TunnelTable {
    /// What the table hands to its `run()`.
    enum Job: Sendable {
        case serve(TunnelListener)
        /// Try again to get the local address of a tunnel.
        case retry(String)
    }

    /// Carries the bytes of all tunnels; stopped at the end of `run()`.
    package nonisolated let relay: Relay

    var records: [String: TunnelEntry] = [:]
    var isReconsidering = false
    nonisolated let news = RouteGeneration()
    let dialer: TargetDialer
    let feed = Broadcast<TunnelEvent>(slow: .ends(after: 256))
    nonisolated let limits: TunnelLimits
    nonisolated let clock: any Clock<Duration>
    nonisolated let jobs = AsyncStream.makeStream(of: Job.self)
    nonisolated let logger: Logger

    private let store: TunnelStore?
    private let check: ClientOwnerCheck
    private let quota: ConnectionLimit
    private var next: UInt64 = 1
    private var isStopping = false
    private var isChanging = false
    private var queue: [CheckedContinuation<Void, Never>] = []

    /// Reads the kept tunnels; they listen again from here on, and serve as soon as `run()` runs.
    ///
    /// - Parameters:
    ///   - resolver: Says where a target is, anew for each connection.
    ///   - dialer: Reaches what the resolver says.
    ///   - store: Nil keeps nothing.
    ///   - check: Tells an owner's clients from others'; nil asks the kernel.
    ///   - limits: See there.
    ///   - idle: See `Relay`.
    ///   - clock: What the pauses in `limits` are measured with.
    ///   - logger: For the operator.
    /// - Throws: `TunnelError.notRead` when there are kept tunnels that cannot be read.
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
        quota = ConnectionLimit(limit: limits.connections)
        do { try await restore() } catch {
            await relay.stop()
            throw error
        }
    }

    /// Every tunnel, in the order of creation.
    package func list() -> [Tunnel] {
        records.values.map(\.tunnel).sorted { number($0.id) < number($1.id) }
    }

    /// What happens to tunnels from now on. A follower that lets 256 events wait is let go: its stream ends.
    package func events() -> AsyncStream<TunnelEvent> { feed.subscribe() }

    /// Makes a tunnel, and keeps it if its spec says so.
    ///
    /// One that is on the same local address is replaced, its connections are cut, and the answer's `replaced` names it;
    /// unless the spec says `noRebind`, or somebody holds it. The very same tunnel again is the one that is there.
    /// Its owner is the user who asks for it, this process's own where that is not known.
    /// - Throws: `TunnelError`; then everything is as it was.
    package func create(_ spec: TunnelSpec, owner: UInt32? = nil) async throws(TunnelError) -> Tunnel {
        let tunnels = try await create([spec], owner: owner)
        return tunnels[0]
    }

    /// Makes tunnels by the same rules: all of them or none.
    package func create(_ specs: [TunnelSpec], owner: UInt32? = nil) async throws(TunnelError) -> [Tunnel] {
        let owner = owner ?? geteuid()
        let made = try await inTurn { () async throws(TunnelError) in
            try check(specs)
            var plans: [TunnelPlan] = []
            for spec in specs {
                let old = holder(of: spec.local)
                if let old, spec.noRebind || !old.spec.isKept { throw .taken(spec.local, by: old.id) }
                if let old, plans.contains(where: { $0.old?.id == old.id }) { throw .inUse(spec.local) }
                // The old one gives its address up last: until the new ones are on the disk, nothing has changed.
                let listeners = old?.door == nil ? try listen(spec.local) : []
                plans.append(TunnelPlan(spec: spec, old: old, owner: owner, listeners: listeners))
            }
            if plans.contains(where: { !$0.isThere && $0.spec.isKept }) { try await store?.check() }
            return try await carryOut(plans, owner)
        }
        for one in made where one.isNew { await consider(one.id) }
        let tunnels = made.compactMap { one in
            var tunnel = records[one.id]?.tunnel
            tunnel?.replaced = one.replaced
            if one.isNew, let tunnel { feed.send(.opened(tunnel)) }
            return tunnel
        }
        // One that was removed at once has no place to go.
        guard tunnels.count == made.count else { throw .noSuchTunnel(made.first { records[$0.id] == nil }?.id ?? "") }
        return tunnels
    }

    /// Makes tunnels that live until `release(_:)`: all of them or none. They are not kept and replace nothing.
    ///
    /// - Throws: `TunnelError`; then everything is as it was.
    package func hold(_ specs: [TunnelSpec], owner: UInt32? = nil) async throws(TunnelError) -> [Tunnel] {
        let ids = try await inTurn { () async throws(TunnelError) in
            try check(specs)
            var opened: [(TunnelSpec, [Listener])] = []
            for spec in specs {
                var held = spec
                held.isKept = false
                if let old = holder(of: spec.local) { throw .taken(spec.local, by: old.id) }
                // Listeners that were made before a failure close when they go out of sight here.
                opened.append((held, try listen(spec.local)))
            }
            try await save(next: next + UInt64(specs.count))
            return opened.map { spec, listeners in insert(spec, owner ?? geteuid(), listeners) }
        }
        for id in ids { await consider(id) }
        let tunnels = ids.compactMap { records[$0]?.tunnel }
        for tunnel in tunnels { feed.send(.opened(tunnel)) }
        return tunnels
    }

    /// Removes held tunnels. Ids that are not there are nothing to do.
    package func release(_ ids: Set<String>) async {
        await inTurn { () async in
            await take(ids.filter { records[$0]?.spec.isKept == false })
        }
    }

    /// Removes a tunnel. When it returns, its address is free and its connections are cut.
    ///
    /// - Throws: `TunnelError.noSuchTunnel`, `.notSaved`.
    package func remove(_ id: String) async throws(TunnelError) {
        try await inTurn { () async throws(TunnelError) in
            guard let record = records[id] else { throw .noSuchTunnel(id) }
            if record.spec.isKept { try await save(without: [id]) }
            await take([id])
        }
    }

    /// Ends the connections of these tunnels that go through the network; those by cable go on, and the tunnels stand.
    ///
    /// When it returns, not one more byte of them passes, and what is being dialled by routes that were asked for before will
    /// not pass either.
    package func sever(_ ids: Set<String>) async {
        let doors = ids.compactMap { records[$0]?.door }
        await withDiscardingTaskGroup { group in
            for door in doors { group.addTask { await door.sever() } }
        }
    }

    /// Removes every tunnel, held ones too.
    ///
    /// - Returns: How many there were.
    /// - Throws: `TunnelError.notSaved`.
    @discardableResult
    package func removeAll() async throws(TunnelError) -> Int {
        try await inTurn { () async throws(TunnelError) in
            let ids = Set(records.keys)
            try await save(without: ids)
            await take(ids)
            return ids.count
        }
    }

    private func restore() async throws(TunnelError) {
        guard let ledger = try await store?.load() else { return }
        next = max(ledger.next, (ledger.tunnels.map { number($0.id) }.max() ?? 0) &+ 1)
        for entry in ledger.tunnels {
            records[entry.id] = TunnelEntry(
                id: entry.id,
                spec: entry.spec,
                owner: entry.owner ?? geteuid(),
                since: entry.since,
                tally: tally(entry.id),
                door: nil,
                state: .failed(reason: "it is being restored"),
                port: entry.port
            )
            if !reopen(entry.id) { jobs.continuation.yield(.retry(entry.id)) }
        }
        await reconsider()
    }

    /// Closes every tunnel and takes no more; what is kept stays kept.
    func stop() async {
        isStopping = true
        await inTurn { () async in
            await close(records.values)
        }
        feed.finish()
        await relay.stop()
    }

    /// Tries to listen on the local address of a tunnel that does not.
    ///
    /// - Returns: False when it is to be tried again later.
    func retry(_ id: String) async -> Bool {
        let isDone = await inTurn { () async in isStopping || records[id]?.door != nil || reopen(id) }
        if isDone { await consider(id) }
        return isDone
    }

    /// True also when the tunnel is gone.
    private func reopen(_ id: String) -> Bool {
        guard var record = records[id] else { return true }
        do {
            let listeners = try listen(record.spec.local, port: record.port)
            let door = door(id, record.spec, record.owner, listeners, record.tally)
            record.door = door
            record.state = .waiting(reason: "its target has not been looked for yet")
            records[id] = record
            jobs.continuation.yield(.serve(door))
            return true
        } catch {
            set(id, .failed(reason: error.description))
            return false
        }
    }

    /// Runs a change when those before it are done, so that no change sees another one half done.
    private func inTurn<Result, Failure: Error>(
        _ change: () async throws(Failure) -> Result
    ) async throws(Failure) -> Result {
        if isChanging { await withCheckedContinuation { queue.append($0) } }
        isChanging = true
        defer {
            // Handed on without a gap: nobody can come in between.
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

    /// The tunnel on a local address; `tcp:0` is nobody's.
    private func holder(of local: ListenAddress) -> TunnelEntry? {
        if case .tcp(_, 0) = local { return nil }
        return records.values.first { $0.local == local }
    }

    /// Listens, and says which tunnel of ours is in the way where one is: 8080 and 127.0.0.1:8080 overlap, for one.
    private func listen(_ local: ListenAddress, port: UInt16? = nil) throws(TunnelError) -> [Listener] {
        do {
            return try TunnelBinding.listen(on: local, port: port)
        } catch .inUse(let local) {
            if case .tcp(_, let asked) = local, let wanted = asked == 0 ? port : asked {
                for record in records.values where record.door?.addresses.contains(where: { $0.port == wanted }) == true
                {
                    throw .taken(local, by: record.id)
                }
                throw .inUse(asked == 0 ? .tcp(host: nil, port: wanted) : local)
            }
            throw .inUse(local)
        }
    }

    private func carryOut(
        _ plans: [TunnelPlan],
        _ owner: UInt32
    ) async throws(TunnelError) -> [(id: String, isNew: Bool, replaced: String?)] {
        let new = plans.filter { !$0.isThere }
        guard !new.isEmpty else { return plans.map { ($0.old?.id ?? "", false, nil) } }
        let replaced = Set(new.compactMap { $0.old?.id })
        let entries = new.enumerated().map { $1.entry(id: "t\(next + UInt64($0))", owner) }
        try await save(
            without: replaced,
            with: entries.filter(\.spec.isKept),
            next: next + UInt64(new.count)
        )
        await take(replaced)
        return plans.map { plan in
            if plan.isThere, let old = plan.old { return (old.id, false, nil) }
            do throws(TunnelError) {
                let listeners = plan.listeners.isEmpty ? try listen(plan.spec.local) : plan.listeners
                return (insert(plan.spec, owner, listeners), true, plan.old?.id)
            } catch {
                // Somebody took the address in the moment between: the tunnel stands and tries again.
                let id = insert(plan.spec, owner, [])
                set(id, .failed(reason: error.description))
                jobs.continuation.yield(.retry(id))
                return (id, true, plan.old?.id)
            }
        }
    }

    private func insert(_ spec: TunnelSpec, _ owner: UInt32, _ listeners: [Listener]) -> String {
        let id = "t\(next)"
        next += 1
        let tally = tally(id)
        let door = listeners.isEmpty ? nil : door(id, spec, owner, listeners, tally)
        records[id] = TunnelEntry(
            id: id,
            spec: spec,
            owner: owner,
            since: Date(),
            tally: tally,
            door: door,
            state: .waiting(reason: "its target has not been looked for yet"),
            port: nil
        )
        if let door { jobs.continuation.yield(.serve(door)) }
        return id
    }

    private func take(_ ids: Set<String>) async {
        let taken = ids.compactMap { records.removeValue(forKey: $0) }
        await close(taken)
        for record in taken { feed.send(.removed(id: record.id)) }
    }

    /// All at once: the relay's thread takes their cuts in one go, and one after the other each would wait for a whole turn of
    /// the busy ones.
    private func close(_ records: some Collection<TunnelEntry>) async {
        let doors = records.compactMap(\.door)
        await withDiscardingTaskGroup { group in
            for door in doors { group.addTask { await door.close() } }
        }
    }

    private func save(
        without removed: Set<String> = [],
        with entries: [PersistedTunnels.Entry] = [],
        next: UInt64? = nil
    ) async throws(TunnelError) {
        var ledger = PersistedTunnels()
        ledger.next = next ?? self.next
        ledger.tunnels = records.values
            .filter { $0.spec.isKept && !removed.contains($0.id) }.map(\.entry)
            .sorted { number($0.id) < number($1.id) }
        ledger.tunnels += entries
        try await store?.save(ledger)
    }

    private func tally(_ id: String) -> TunnelMetrics { TunnelMetrics(id: id, quota: quota, feed: feed) }

    private func door(
        _ id: String,
        _ spec: TunnelSpec,
        _ owner: UInt32,
        _ listeners: [Listener],
        _ tally: TunnelMetrics
    ) -> TunnelListener {
        TunnelListener(
            id: id,
            gate: ClientAuthorizer(
                spec: spec,
                owner: owner,
                check: check,
                screen: ClientInspector(limits: limits.screen, clock: clock)
            ),
            listeners: listeners,
            tally: tally,
            dialer: dialer,
            relay: relay,
            news: news,
            limits: limits,
            clock: clock,
            logger: logger
        )
    }

    private func number(_ id: String) -> UInt64 { PersistedTunnels.number(of: id) ?? 0 }
}
