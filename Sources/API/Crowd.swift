import Synchronization

/// How many connections all doors have together.
package final class Crowd: Sendable {
    /// All of them.
    static let limit = 256
    /// Of these, so many are kept for owners: whatever others do, an owner can come in and put an end to it.
    static let kept = 8

    private let count = Mutex(0)

    package init() {}

    func enter() { count.withLock { $0 += 1 } }
    func leave() { count.withLock { $0 -= 1 } }

    /// Whether one more may be taken in: at a door for owners, or at one for everybody.
    func hasRoom(forOwners: Bool) -> Bool { count.withLock { $0 < (forOwners ? Self.limit : Self.limit - Self.kept) } }

    /// Whether somebody is in who should give way to owners.
    var isTight: Bool { count.withLock { $0 > Self.limit - Self.kept } }
}
