package import FoundationEssentials
package import Model

/// The time in which a lease was held.
package struct LeaseUse: Hashable, Sendable {
    package let device: UDID?
    package let grant: String?
    package let start: Date
    package let end: Date
}

/// The ended leases of the last 24 hours.
struct LeaseHistory: Sendable {
    /// The maximum number of kept leases. Beyond it, the oldest is forgotten.
    static let limit = 4_096
    static let retention = 86_400.0

    private(set) var uses: [LeaseUse] = []

    /// Adds leases that ended now.
    mutating func add(_ ended: [LeaseEntry], at time: LeaseTime) {
        uses += ended.filter { !$0.isPending }.map { $0.use(until: time.elapsed, at: time) }
        if let first = uses.first, uses.count > Self.limit || first.end < time.date - Self.retention {
            uses = uses.suffix(Self.limit).filter { $0.end >= time.date - Self.retention }
        }
    }
}

extension LeaseEntry {
    /// The use of the lease from its start until a time.
    func use(until end: Duration, at time: LeaseTime) -> LeaseUse {
        LeaseUse(
            device: device,
            grant: holder.grant,
            start: time.date - (time.elapsed - start).seconds,
            end: time.date - (time.elapsed - end).seconds
        )
    }
}

extension Duration {
    fileprivate var seconds: Double { self / .seconds(1) }
}
