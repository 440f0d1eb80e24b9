import Model

/// The leases that ended because this host lost their claims, until their holders know.
///
/// Another host may have leased the phone since. The holder learns the end of a lease only from an answer, so its changing
/// calls are refused until it asks for the lease again or gives it up.
struct LostLeases: Sendable {
    struct Entry: Sendable {
        let number: UInt64
        let key: String
        let targets: Set<LeaseTarget>
        /// A sentence without a full stop.
        let reason: String
        let end: Duration
    }

    /// The maximum number of entries of one client; one for each of its leases.
    private static let limitOfHolder = LeaseTable.maxLeases
    /// The maximum number of entries. The oldest one is removed.
    private static let limit = 1_024

    private var entries: [Entry] = []

    var isEmpty: Bool { entries.isEmpty }

    /// Adds a lease that ended for a reason, a sentence without a full stop.
    mutating func add(_ lease: LeaseTable.Entry, because reason: String, at end: Duration) {
        let entry = Entry(
            number: lease.number,
            key: lease.holder.key,
            targets: lease.targets,
            reason: reason,
            end: end
        )
        entries.append(entry)
        let own = entries.count { $0.key == entry.key }
        if own > Self.limitOfHolder { remove { $0.key == entry.key } }
        if entries.count > Self.limit { entries.removeFirst() }
    }

    /// Removes the oldest entry that matches.
    private mutating func remove(where matches: (Entry) -> Bool) {
        if let index = entries.firstIndex(where: matches) { entries.remove(at: index) }
    }

    /// Returns the newest lost lease of a client on one of the targets; nil if there is none.
    func entry(on targets: [LeaseTarget], of key: String) -> Entry? {
        entries.last { $0.key == key && !$0.targets.isDisjoint(with: targets) }
    }

    /// Removes the lost leases of a client on the targets.
    mutating func acknowledge(_ targets: [LeaseTarget], by key: String) {
        entries.removeAll { $0.key == key && !$0.targets.isDisjoint(with: targets) }
    }

    /// Removes the lost lease of a client with this number.
    mutating func acknowledge(_ number: UInt64, by key: String) {
        entries.removeAll { $0.key == key && $0.number == number }
    }
}
