import Model

/// The leases, the clients that wait for one, and the changing calls that run. Has no clock and no I/O.
///
/// Two rules keep changing calls of two clients apart. A lease is pending until the running changing calls of other
/// clients have ended, and only its holder may begin changing calls. A lease does not expire during a changing call of
/// its holder. In a team, a lease of a phone is also pending until its claim is held.
///
/// Clients wait in the order of their requests. While a client waits, use does not extend the lease of an agent.
///
/// Each target belongs to at most one lease. A lease has the target of its request, and gets linked targets that belong
/// to no other lease. It keeps them also after the link has ended. So a new link takes nothing from any holder.
struct LeaseTable: Sendable {
    /// The results of a change for clients that wait, and for the sessions of grants.
    struct Effects: Sendable {
        /// The tickets of requests that were granted.
        var granted: [UInt64] = []
        /// The leases that ended.
        var ended: [LeaseEntry] = []
        /// Those that ended without a request of a client, each with the reason.
        var lapsed: [(lease: LeaseEntry, reason: String)] = []
    }

    /// The maximum number of clients that wait for one lease.
    static let maxWaiting = 128
    /// The maximum number of clients of one other host that wait for one lease. It leaves room for all other clients, because
    /// a host chooses the names of its clients itself.
    static let maxWaitingOfHost = maxWaiting / 4
    /// The maximum number of waiting requests of one client.
    static let maxOwnWaiting = 16
    /// The maximum number of leases of one holder.
    static let maxLeases = 16

    private(set) var entries: [UInt64: LeaseEntry] = [:]
    /// The number of the lease that each target belongs to.
    private(set) var owners: [LeaseTarget: UInt64] = [:]
    /// The claims of this host; nil without a team, where no lease needs a claim.
    var claims: HeldClaims?
    /// Grows when claims are lost. The result of an older step is outdated.
    var claimGeneration: UInt64 = 0
    private var queue: [LeaseRequest] = []
    private var calls = ChangingCalls()
    var ended = EndedLeases()
    /// The phones that endpoints without a cable are linked to.
    private var phones: [EndpointID: UDID] = [:]
    private var lastNumber: UInt64 = 0
    private var effects = Effects()

    /// - Parameter needsClaims: True in a team.
    init(needsClaims: Bool = false) { claims = needsClaims ? HeldClaims() : nil }

    /// Returns the effects since the last call.
    mutating func takeEffects() -> Effects {
        defer { effects = Effects() }
        return effects
    }

    /// Adds a lease that ended without a request of a client to the effects.
    mutating func addLapsed(_ lease: LeaseEntry, because reason: String) { effects.lapsed.append((lease, reason)) }

    /// The time at which the next lease expires; nil if none can expire now.
    var deadline: Duration? { entries.values.lazy.filter(mayExpire).map(\.end).min() }

    /// True without held and pending leases.
    var isEmpty: Bool { entries.isEmpty }

    /// The held leases, each with the number of clients that wait, in the order of their numbers.
    var leases: [(lease: LeaseEntry, waiting: Int)] {
        entries.values.filter { !$0.isPending }.sorted { $0.number < $1.number }
            .map { ($0, waiting(for: $0.targets).count) }
    }

    /// Returns the leases that a target is subject to, held or pending: first the one of its phone.
    func leases(on target: LeaseTarget) -> [LeaseEntry] {
        let numbers = targets(of: target).compactMap { owners[$0] }
        return (numbers.first == numbers.last ? Array(numbers.prefix(1)) : numbers).compactMap { entries[$0] }
    }

    /// Returns the held lease of a client on a target; nil if the target is subject to the lease of another client.
    func ownLease(on target: LeaseTarget, of key: String) -> LeaseEntry? {
        let leases = leases(on: target)
        return leases.allSatisfy { $0.holder.key == key && !$0.isPending } ? leases.first : nil
    }

    /// Returns a target with its linked phone first.
    func targets(of target: LeaseTarget) -> [LeaseTarget] {
        guard case .endpoint(let id) = target, let phone = phones[id] else { return [target] }
        return [.device(phone), target]
    }

    /// Returns the keys of the clients that wait for one of the targets.
    private func waiting(for wanted: Set<LeaseTarget>) -> Set<String> {
        Set(queue.lazy.filter { !wanted.isDisjoint(with: targets(of: $0.target)) }.map(\.holder.key))
    }

    private func mayExpire(_ lease: LeaseEntry) -> Bool {
        !lease.isPending && !hasCalls(on: lease) { $0 == lease.holder.key }
    }

    func hasCalls(on lease: LeaseEntry, ofClient isIncluded: (String) -> Bool) -> Bool {
        calls.contains(on: lease.targets, ofClient: isIncluded)
    }
}

/// Links.
extension LeaseTable {
    /// Replaces the links from endpoints without a cable to phones.
    mutating func link(_ phones: [EndpointID: UDID]) {
        guard phones != self.phones else { return }
        self.phones = phones
        calls.link(phones)
        extendOverLinks()
    }

    /// Gives linked targets without a lease to the leases of their counterparts, the oldest lease first.
    private mutating func extendOverLinks() {
        guard !owners.isEmpty else { return }
        for (id, udid) in phones.sorted(by: { age($0.key) < age($1.key) }) where owners[.device(udid)] == nil {
            guard let number = owners[.endpoint(id)], let lease = entries[number], lease.device == nil else { continue }
            // A client that waits for the phone itself comes first.
            let isAwaited = queue.contains { request in
                let targets = targets(of: request.target)
                return request.holder.key != lease.holder.key && targets.contains(.device(udid))
                    && !targets.contains(.endpoint(id))
            }
            if !isAwaited { give(.device(udid), to: number) }
        }
        for (id, udid) in phones where owners[.endpoint(id)] == nil {
            if let number = owners[.device(udid)] { give(.endpoint(id), to: number) }
        }
    }

    private func age(_ id: EndpointID) -> UInt64 { owners[.endpoint(id)] ?? .max }

    private mutating func give(_ target: LeaseTarget, to number: UInt64) {
        owners[target] = number
        entries[number]?.targets.insert(target)
    }
}

/// Requests.
extension LeaseTable {
    /// Requests a lease. The holder of the lease renews it; any other client waits in the queue.
    ///
    /// A client that need not wait is granted at once, as an effect.
    ///
    /// - Throws: `AccessError.limit`, `.notFound` for a lease to renew that has ended.
    mutating func request(_ request: LeaseRequest, at now: Duration) throws(AccessError) {
        expire(at: now)
        let key = request.holder.key
        let own = ownLease(on: request.target, of: key)
        if let renewing = request.renewing, own?.number != renewing {
            throw ended.error(for: renewing, key: key, isOwner: false)
        }
        ended.acknowledge(targets(of: request.target), by: key)
        if var lease = own {
            lease.length = request.length
            if let note = request.note { lease.note = note }
            let end = now + request.length
            lease.end = mayExtend(lease) ? end : min(end, lease.end)
            entries[lease.number] = lease
            effects.granted.append(request.ticket)
            return
        }
        let waiting = waiting(for: Set(targets(of: request.target))).subtracting([key])
        guard waiting.count < Self.maxWaiting else {
            throw .limit("\(Self.maxWaiting) clients wait for this lease already; try again later")
        }
        if let host = request.holder.host,
            waiting.count(where: { $0.hasPrefix(MemberClient.holderPrefix(of: host)) }) >= Self.maxWaitingOfHost
        {
            throw .limit(
                "\(Self.maxWaitingOfHost) clients of the host \(host) wait for this lease already; try again later"
            )
        }
        guard queue.count(where: { $0.holder.key == key }) < Self.maxOwnWaiting else {
            throw .limit("a client may have \(Self.maxOwnWaiting) waiting requests; wait for one of them first")
        }
        guard entries.values.count(where: { $0.holder.key == key }) < Self.maxLeases else {
            throw .limit("a client may hold \(Self.maxLeases) leases at once; release one first")
        }
        queue.append(request)
        advance(at: now)
    }

    /// Withdraws a request that waits.
    ///
    /// - Returns: False if the request was granted before.
    mutating func withdraw(_ ticket: UInt64, at now: Duration) -> Bool {
        let count = queue.count
        queue.removeAll { $0.ticket == ticket }
        var isWithdrawn = queue.count < count
        if let lease = entries.values.first(where: { $0.isPending && $0.request.ticket == ticket }) {
            remove(lease)
            isWithdrawn = true
        }
        advance(at: now)
        return isWithdrawn
    }

    /// Ends a lease, also during a changing call of its holder. The next client is granted after that call.
    ///
    /// - Parameters:
    ///   - number: The number of the lease.
    ///   - reason: The reason that a later renewal names; nil for an end that needs none.
    ///   - now: The current time.
    /// - Returns: The ended lease; nil if there is no such lease.
    @discardableResult
    mutating func end(_ number: UInt64, because reason: String? = nil, at now: Duration) -> LeaseEntry? {
        guard let lease = entries[number], !lease.isPending else { return nil }
        if let reason { ended.add(lease, because: reason, at: now) }
        remove(lease)
        advance(at: now)
        return lease
    }

    /// Ends a lease without a request of a client.
    mutating func lapse(_ number: UInt64, because reason: String, at now: Duration) {
        if let lease = end(number, at: now) { addLapsed(lease, because: reason) }
    }
}

/// Changing calls.
extension LeaseTable {
    /// Begins a changing call. Use extends the lease of the holder.
    ///
    /// - Returns: The number of the call; nil if another client has the lease, and the call must not be made.
    mutating func beginCall(on target: LeaseTarget, by holder: LeaseHolder, at now: Duration) -> UInt64? {
        expire(at: now)
        for lease in leases(on: target) {
            guard lease.holder.key == holder.key, !lease.isPending else { return nil }
            extend(lease, at: now)
            // Overlapping calls of the holder must not keep the lease from the next client.
            guard let end = entries[lease.number]?.end, now < end else { return nil }
            // The call of another client began before the link of the target.
            guard !hasCalls(on: lease, ofClient: { $0 != holder.key }) else { return nil }
        }
        return calls.begin(on: target, Set(targets(of: target)), by: holder.key)
    }

    /// Ends a changing call.
    mutating func endCall(_ number: UInt64, at now: Duration) {
        guard let call = calls.end(number) else { return }
        for lease in entries.values
        where lease.holder.key == call.key && !lease.isPending && !lease.targets.isDisjoint(with: call.targets) {
            extend(lease, at: now)
        }
        advance(at: now)
        expire(at: now)
    }

    /// Ends the leases whose time is over.
    mutating func expire(at now: Duration) {
        let expired = entries.values.filter { now >= $0.end && mayExpire($0) }
        guard !expired.isEmpty else { return }
        for lease in expired {
            remove(lease)
            addLapsed(lease, because: "expired")
        }
        advance(at: now)
    }

    private mutating func remove(_ lease: LeaseEntry) {
        entries[lease.number] = nil
        for target in lease.targets { owners[target] = nil }
        effects.ended.append(lease)
    }

    private mutating func extend(_ lease: LeaseEntry, at now: Duration) {
        guard mayExtend(lease) else { return }
        entries[lease.number]?.end = max(lease.end, now + lease.length)
    }

    private func mayExtend(_ lease: LeaseEntry) -> Bool { !lease.holder.isAgent || waiting(for: lease.targets).isEmpty }

    /// Gives free targets to the first client that waits for them. Grants a pending lease when its phone is claimed and no
    /// changing call of another client runs.
    mutating func advance(at now: Duration) {
        extendOverLinks()
        var claimed: Set<LeaseTarget> = []
        for request in queue {
            let targets = targets(of: request.target)
            let isFree = claimed.isDisjoint(with: targets) && targets.allSatisfy { owners[$0] == nil }
            claimed.formUnion(targets)
            guard isFree else { continue }
            queue.removeAll { $0.ticket == request.ticket }
            lastNumber += 1
            entries[lastNumber] = LeaseEntry(
                number: lastNumber,
                request: request,
                length: request.length,
                note: request.note,
                start: now,
                end: now + request.length
            )
            for target in targets { give(target, to: lastNumber) }
            extendOverLinks()
        }
        for lease in entries.values.sorted(by: { $0.number < $1.number })
        where lease.isPending && isClaimed(lease) && !hasCalls(on: lease, ofClient: { $0 != lease.holder.key }) {
            entries[lease.number]?.isPending = false
            entries[lease.number]?.start = now
            entries[lease.number]?.end = now + lease.length
            effects.granted.append(lease.request.ticket)
        }
        // Other requests of a holder need not wait for their own lease.
        let own = Set(queue.filter { ownLease(on: $0.target, of: $0.holder.key) != nil }.map(\.ticket))
        guard !own.isEmpty else { return }
        effects.granted += queue.map(\.ticket).filter(own.contains)
        queue.removeAll { own.contains($0.ticket) }
    }
}
