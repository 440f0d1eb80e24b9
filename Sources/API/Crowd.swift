import Synchronization

/// How many connections all doors have together, and each user of them.
package final class Crowd: Sendable {
    /// All of them.
    static let limit = 256
    /// Of these, so many are kept for owners: whatever others do, an owner can come in and put an end to it.
    static let kept = 8
    /// One user may have so many, unless it is an owner's: nobody is to keep the others out.
    static let limitPerUser = 64

    private let count = Mutex(0)
    /// Those whom the kernel does not name are one user together.
    private let users = Mutex<[UInt32?: Int]>([:])

    package init() {}

    func enter() { count.withLock { $0 += 1 } }
    func leave() { count.withLock { $0 -= 1 } }

    /// Notes a connection of a user's; false when it has as many as it may have.
    func admit(_ user: UInt32?) -> Bool {
        users.withLock { users in
            guard users[user, default: 0] < Self.limitPerUser else { return false }
            users[user, default: 0] += 1
            return true
        }
    }

    func dismiss(_ user: UInt32?) {
        users.withLock { users in
            users[user, default: 1] -= 1
            if users[user] == 0 { users[user] = nil }
        }
    }

    /// Whether one more may be taken in: at a door for owners, or at one for everybody.
    func hasRoom(forOwners: Bool) -> Bool { count.withLock { $0 < (forOwners ? Self.limit : Self.limit - Self.kept) } }

    /// Whether somebody is in who should give way to owners.
    var isTight: Bool { count.withLock { $0 > Self.limit - Self.kept } }
}
