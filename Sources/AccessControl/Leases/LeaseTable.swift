import Model

/// The leases, the clients that wait for one, and the changing calls that run. Has no clock and no I/O.
///
/// Two rules keep changing calls of two clients apart. A lease is pending until the running changing calls of other
/// clients have ended, and only its holder may begin changing calls. A lease does not expire during a changing call of
/// its holder.
///
/// Clients wait in the order of their requests. While a client waits, use does not extend the lease of an agent.
struct LeaseTable: Sendable {
    /// A request for a lease.
    struct Request: Sendable {
        /// A number that identifies the request.
        let ticket: UInt64
        let target: LeaseTarget
        let endpoint: EndpointID
        let holder: LeaseHolder
        let length: Duration
        let note: SanitizedText?
    }

    /// A lease that is held, or pending until the changing calls of other clients have ended.
    struct Entry: Sendable {
        let number: UInt64
        let request: Request
        /// The length after the last renewal.
        var length: Duration
        /// The note of the last request that had one.
        var note: SanitizedText?
        var start: Duration
        var end: Duration
        var isPending = true

        var holder: LeaseHolder { request.holder }
    }

    /// The results of a change for clients that wait, and for the sessions of grants.
    struct Effects: Sendable {
        /// The tickets of requests that were granted.
        var granted: [UInt64] = []
        /// The numbers of leases that ended.
        var ended: [UInt64] = []
    }

    private struct Slot {
        var lease: Entry?
        var queue: [Request] = []
        /// The number of running changing calls by the key of their holder.
        var calls: [String: Int] = [:]

        var isEmpty: Bool { lease == nil && queue.isEmpty && calls.isEmpty }

        func hasCalls(of key: String) -> Bool { calls[key] != nil }
        func hasCalls(exceptOf key: String) -> Bool { calls.count > (hasCalls(of: key) ? 1 : 0) }
    }

    /// The maximum number of clients that wait for one lease.
    static let maxWaiting = 128
    /// The maximum number of leases of one holder.
    static let maxLeases = 16

    private var slots: [LeaseTarget: Slot] = [:]
    private var lastNumber: UInt64 = 0
    private var effects = Effects()

    /// Returns the effects since the last call.
    mutating func takeEffects() -> Effects {
        defer { effects = Effects() }
        return effects
    }

    /// The time at which the next lease expires; nil if none can expire now.
    var deadline: Duration? {
        slots.values.compactMap { slot in
            slot.lease.flatMap { $0.isPending || slot.hasCalls(of: $0.holder.key) ? nil : $0.end }
        }.min()
    }

    /// The held leases, each with the number of clients that wait, in the order of their numbers.
    var leases: [(lease: Entry, waiting: Int)] {
        let held = slots.values.compactMap { slot -> (lease: Entry, waiting: Int)? in
            guard let lease = slot.lease, !lease.isPending else { return nil }
            return (lease, slot.queue.count)
        }
        return held.sorted { $0.lease.number < $1.lease.number }
    }

    /// Returns the lease of a target, held or pending.
    func lease(of target: LeaseTarget) -> (lease: Entry, waiting: Int)? {
        slots[target].flatMap { slot in slot.lease.map { ($0, slot.queue.count) } }
    }

    /// Returns whether changing calls of another client run.
    func hasCalls(on target: LeaseTarget, exceptOf key: String) -> Bool {
        slots[target]?.hasCalls(exceptOf: key) ?? false
    }
}

/// Requests.
extension LeaseTable {
    /// Requests a lease. The holder of the lease renews it; any other client waits in the queue.
    ///
    /// A client that need not wait is granted at once, as an effect.
    ///
    /// - Throws: `AccessError.limit`.
    mutating func request(_ request: Request, at now: Duration) throws(AccessError) {
        expire(request.target, at: now)
        var slot = slots[request.target] ?? Slot()
        if var lease = slot.lease, !lease.isPending, lease.holder.key == request.holder.key {
            lease.length = request.length
            if let note = request.note { lease.note = note }
            let end = now + request.length
            lease.end = Self.mayExtend(lease, in: slot) ? end : min(end, lease.end)
            slot.lease = lease
            slots[request.target] = slot
            effects.granted.append(request.ticket)
            return
        }
        guard slot.queue.count < Self.maxWaiting else {
            throw .limit("\(Self.maxWaiting) clients wait for this lease already; try again later")
        }
        guard slots.values.count(where: { $0.lease?.holder.key == request.holder.key }) < Self.maxLeases else {
            throw .limit("a client may hold \(Self.maxLeases) leases at once; release one first")
        }
        slot.queue.append(request)
        advance(slot, of: request.target, at: now)
    }

    /// Withdraws a request that waits.
    ///
    /// - Returns: False if the request was granted before.
    mutating func withdraw(_ ticket: UInt64, for target: LeaseTarget, at now: Duration) -> Bool {
        guard var slot = slots[target] else { return false }
        let count = slot.queue.count
        slot.queue.removeAll { $0.ticket == ticket }
        var isWithdrawn = slot.queue.count < count
        if let lease = slot.lease, lease.isPending, lease.request.ticket == ticket {
            slot.lease = nil
            isWithdrawn = true
        }
        advance(slot, of: target, at: now)
        return isWithdrawn
    }

    /// Ends a lease, also during a changing call of its holder. The next client is granted after that call.
    ///
    /// - Returns: The ended lease; nil if there is no such lease.
    @discardableResult
    mutating func end(_ number: UInt64, at now: Duration) -> Entry? {
        guard let (target, slot) = slots.first(where: { $0.value.lease?.number == number }), let lease = slot.lease,
            !lease.isPending
        else { return nil }
        end(slot, of: target, at: now)
        return lease
    }
}

/// Changing calls.
extension LeaseTable {
    /// Begins a changing call. Use extends the lease of the holder.
    ///
    /// - Returns: False if another client has the lease; the call must then not be made.
    mutating func beginCall(on target: LeaseTarget, by holder: LeaseHolder, at now: Duration) -> Bool {
        expire(target, at: now)
        var slot = slots[target] ?? Slot()
        if let lease = slot.lease {
            guard lease.holder.key == holder.key, !lease.isPending else { return false }
            extend(&slot, at: now)
            // Overlapping calls of the holder must not keep the lease from the next client.
            guard slot.lease.map({ now < $0.end }) ?? true else { return false }
        }
        slot.calls[holder.key, default: 0] += 1
        slots[target] = slot
        return true
    }

    /// Ends a changing call.
    mutating func endCall(on target: LeaseTarget, by holder: LeaseHolder, at now: Duration) {
        guard var slot = slots[target], let count = slot.calls[holder.key] else { return }
        slot.calls[holder.key] = count > 1 ? count - 1 : nil
        if let lease = slot.lease, !lease.isPending, lease.holder.key == holder.key { extend(&slot, at: now) }
        advance(slot, of: target, at: now)
        expire(target, at: now)
    }

    /// Ends the leases whose time is over.
    mutating func expire(at now: Duration) { for target in Array(slots.keys) { expire(target, at: now) } }

    private mutating func expire(_ target: LeaseTarget, at now: Duration) {
        guard let slot = slots[target], let lease = slot.lease, !lease.isPending, now >= lease.end,
            !slot.hasCalls(of: lease.holder.key)
        else { return }
        end(slot, of: target, at: now)
    }

    private mutating func end(_ slot: Slot, of target: LeaseTarget, at now: Duration) {
        var slot = slot
        if let lease = slot.lease { effects.ended.append(lease.number) }
        slot.lease = nil
        advance(slot, of: target, at: now)
    }

    private func extend(_ slot: inout Slot, at now: Duration) {
        guard let lease = slot.lease, Self.mayExtend(lease, in: slot) else { return }
        slot.lease?.end = max(lease.end, now + lease.length)
    }

    private static func mayExtend(_ lease: Entry, in slot: Slot) -> Bool {
        !lease.holder.isAgent || slot.queue.isEmpty
    }

    /// Gives a free lease to the first client of the queue, and grants a pending lease when no changing call of another
    /// client runs. Stores the slot.
    private mutating func advance(_ slot: Slot, of target: LeaseTarget, at now: Duration) {
        var slot = slot
        if slot.lease == nil, !slot.queue.isEmpty {
            let request = slot.queue.removeFirst()
            lastNumber += 1
            slot.lease = Entry(
                number: lastNumber,
                request: request,
                length: request.length,
                note: request.note,
                start: now,
                end: now + request.length
            )
        }
        if let lease = slot.lease, lease.isPending, !slot.hasCalls(exceptOf: lease.holder.key) {
            slot.lease?.isPending = false
            slot.lease?.start = now
            slot.lease?.end = now + lease.length
            // Other requests of the holder need not wait for their own lease.
            let own = slot.queue.filter { $0.holder.key == lease.holder.key }.map(\.ticket)
            slot.queue.removeAll { $0.holder.key == lease.holder.key }
            effects.granted += [lease.request.ticket] + own
        }
        slots[target] = slot.isEmpty ? nil : slot
    }
}
