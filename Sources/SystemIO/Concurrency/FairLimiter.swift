import Synchronization

/// A limit of things in use that holders share, such as connections. No holder can use all of them.
///
/// Above the limit, an eighth more is kept for holders with few units in use. So a holder that uses up the limit delays no
/// other one.
package final class FairLimiter<Holder: Hashable & Sendable>: Sendable {
    /// The number of units that a holder gets also above the limit.
    package static var share: Int { 16 }

    /// The limit without the eighth for holders with few units.
    package let limit: Int
    private let state = Mutex<(total: Int, counts: [Holder: Int])>((0, [:]))

    package init(limit: Int) { self.limit = limit }

    /// The number of units in use.
    package var count: Int { state.withLock { $0.total } }

    /// Takes a unit. Call `release` after its use.
    ///
    /// - Returns: False if the limit is reached.
    package func acquire(_ holder: Holder) -> Bool {
        state.withLock { state in
            let own = state.counts[holder, default: 0]
            guard state.total < limit || own < Self.share && state.total < limit + limit / 8 else { return false }
            state.total += 1
            state.counts[holder] = own + 1
            return true
        }
    }

    /// Returns a unit.
    package func release(_ holder: Holder) {
        state.withLock { state in
            state.total -= 1
            let own = state.counts[holder, default: 1] - 1
            state.counts[holder] = own == 0 ? nil : own
        }
    }

    /// Takes a unit that is returned on deallocation of the permit; nil if the limit is reached.
    package func permit(_ holder: Holder) -> FairPermit<Holder>? {
        acquire(holder) ? FairPermit(holder, of: self) : nil
    }
}

/// A unit of a `FairLimiter`, returned on deallocation.
package final class FairPermit<Holder: Hashable & Sendable>: Sendable {
    private let holder: Holder
    private let limiter: FairLimiter<Holder>

    fileprivate init(_ holder: Holder, of limiter: FairLimiter<Holder>) {
        self.holder = holder
        self.limiter = limiter
    }

    deinit { limiter.release(holder) }
}
