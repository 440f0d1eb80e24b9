import Model

/// The changing calls that run.
struct ChangingCalls: Sendable {
    /// A changing call that runs.
    struct Call: Sendable {
        let target: LeaseTarget
        /// The target and the targets that were linked to it during the call.
        var targets: Set<LeaseTarget>
        /// The key of the client.
        let key: String
    }

    private var calls: [UInt64: Call] = [:]
    private var last: UInt64 = 0

    /// Begins a call on a target, to which other targets may be linked.
    ///
    /// - Returns: The number of the call.
    mutating func begin(on target: LeaseTarget, _ targets: Set<LeaseTarget>, by key: String) -> UInt64 {
        last += 1
        calls[last] = Call(target: target, targets: targets, key: key)
        return last
    }

    /// Ends a call; nil if it has ended already.
    mutating func end(_ number: UInt64) -> Call? { calls.removeValue(forKey: number) }

    /// Adds the phones of endpoints without a cable to the targets of their calls.
    mutating func link(_ phones: [EndpointID: UDID]) {
        for (number, call) in calls {
            if case .endpoint(let id) = call.target, let phone = phones[id] {
                calls[number]?.targets.insert(.device(phone))
            }
        }
    }

    /// Returns whether a call on one of the targets runs.
    func contains(on targets: Set<LeaseTarget>, ofClient isIncluded: (String) -> Bool) -> Bool {
        calls.values.contains { isIncluded($0.key) && !$0.targets.isDisjoint(with: targets) }
    }
}
