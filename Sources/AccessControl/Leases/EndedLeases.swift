import Model

/// The leases that ended before their time.
///
/// A lease ends without its holder's knowledge if this host lost its claim. Another host may have leased the phone since.
/// The holder learns the end only from an answer. So its changing calls are refused until it asks for the lease again or
/// gives it up.
struct EndedLeases: Sendable {
    struct Entry: Sendable {
        let number: UInt64
        let key: String
        let targets: Set<LeaseTarget>
        /// A sentence without a full stop.
        let reason: String
        let end: Duration
    }

    /// The maximum number of ended leases.
    private static let limit = 64
    /// The maximum number of lost leases, in total and of one client: one for each of its leases.
    private static let lostLimit = 1_024
    private static let lostLimitOfHolder = LeaseTable.maxLeases

    /// The last leases that ended, for the errors of later renewals.
    private var entries: [Entry] = []
    /// The leases whose holders do not know their end yet.
    private var lost: [Entry] = []

    /// True if each holder knows the end of its leases.
    var areKnown: Bool { lost.isEmpty }

    /// Adds a lease that ended for a reason, a sentence without a full stop.
    mutating func add(_ lease: LeaseEntry, because reason: String, at end: Duration) {
        entries.append(Entry(lease, because: reason, at: end))
        if entries.count > Self.limit { entries.removeFirst() }
    }

    /// Adds a lease that ended without the knowledge of its holder.
    mutating func addLost(_ lease: LeaseEntry, because reason: String, at end: Duration) {
        lost.append(Entry(lease, because: reason, at: end))
        let own = lost.indices.filter { lost[$0].key == lease.holder.key }
        if own.count > Self.lostLimitOfHolder { lost.remove(at: own[0]) }
        if lost.count > Self.lostLimit { lost.removeFirst() }
    }

    /// Returns the error for a lease that has ended, as the client with this key may know it.
    func error(for number: UInt64, key: String, isOwner: Bool) -> AccessError {
        let entry = entries.last { $0.number == number && (isOwner || $0.key == key) }
        return .notFound(
            entry.map { LeaseEntry.ending(of: number, because: $0.reason) }
                ?? "there is no lease with this ID; leases also end when the broker stops; `patchbay leases` lists all"
        )
    }

    /// Returns the newest lost lease of a client on one of the targets; nil if there is none.
    func lost(on targets: [LeaseTarget], of key: String) -> Entry? {
        lost.last { $0.key == key && !$0.targets.isDisjoint(with: targets) }
    }

    /// Removes the lost leases of a client on the targets.
    mutating func acknowledge(_ targets: [LeaseTarget], by key: String) {
        lost.removeAll { $0.key == key && !$0.targets.isDisjoint(with: targets) }
    }

    /// Removes the lost lease of a client with this number.
    mutating func acknowledge(_ number: UInt64, by key: String) {
        lost.removeAll { $0.key == key && $0.number == number }
    }
}

extension EndedLeases.Entry {
    fileprivate init(_ lease: LeaseEntry, because reason: String, at end: Duration) {
        self.init(number: lease.number, key: lease.holder.key, targets: lease.targets, reason: reason, end: end)
    }
}
