import AccessControl
import Glibc
import Model
import NIOPosix
import Synchronization

/// Tells whether a user is an owner now, by the user database. For clients whose groups the kernel does not report.
package final class OwnerDirectory: Sendable {
    /// An entry of the user database.
    struct Account: Hashable, Sendable {
        let name: String
        let isOwner: Bool
    }

    /// The time after which a user is looked up again. A user who leaves the group stops being an owner within this time.
    private let lifetime: Duration
    /// The maximum number of groups of a user.
    private static let maxGroups: CInt = 1_024

    private let policy: OwnerPolicy
    private let lookUp: @Sendable (UInt32) async -> (name: String, groups: [UInt32])?
    private let accounts = Mutex<[UInt32: (account: Account?, readAt: ContinuousClock.Instant)]>([:])

    package convenience init(_ policy: OwnerPolicy) {
        self.init(policy) { user in
            // The database may be a server on the network, so the lookup must not block a thread of Swift's pool.
            try? await NIOThreadPool.singleton.runIfActive { Self.read(user) }
        }
    }

    init(
        _ policy: OwnerPolicy,
        lifetime: Duration = .seconds(30),
        lookUp: @escaping @Sendable (UInt32) async -> (name: String, groups: [UInt32])?
    ) {
        self.policy = policy
        self.lifetime = lifetime
        self.lookUp = lookUp
    }

    /// Returns whether a user is an owner: root, the broker's own user, or a member of the owners' group.
    func includes(_ user: UInt32) async -> Bool {
        if user == 0 || user == policy.user { return true }
        return policy.group == nil ? false : await account(of: user)?.isOwner ?? false
    }

    /// Returns when a user is no owner any more, or when the task is cancelled. For what outlives the check of a request.
    func waitForEnd(of user: UInt32) async throws {
        while await includes(user) { try await Task.sleep(for: lifetime) }
    }

    /// Returns when the user of a browser's session is no owner any more; for other clients only after a cancellation.
    ///
    /// A request is checked once, but a stream may last as long as the session.
    func waitForEndOfSession(of principal: Principal) async throws {
        guard principal.session != nil, let user = principal.user else {
            return try await Task.sleep(for: .seconds(Int64(Int32.max)))
        }
        try await waitForEnd(of: user)
    }

    /// Returns the name of a user: `anna`, or `user 1000` for a user without one.
    func name(of user: UInt32) async -> String { await account(of: user)?.name ?? "user \(user)" }

    private func account(of user: UInt32) async -> Account? {
        let known = accounts.withLock { $0[user] }
        if let known, .now - known.readAt < lifetime { return known.account }
        let entry = await lookUp(user)
        let account = entry.map { entry in
            Account(name: entry.name, isOwner: policy.group.map(entry.groups.contains) ?? false)
        }
        accounts.withLock { $0[user] = (account, .now) }
        return account
    }

    /// Reads the user database. Blocks.
    private static func read(_ user: UInt32) -> (name: String, groups: [UInt32])? {
        var entry = passwd()
        var found: UnsafeMutablePointer<passwd>?
        return withUnsafeTemporaryAllocation(of: CChar.self, capacity: 16 << 10) { space in
            guard let buffer = space.baseAddress, getpwuid_r(user, &entry, buffer, space.count, &found) == 0,
                found != nil, let name = entry.pw_name
            else { return nil }
            var count = maxGroups
            let groups = [gid_t](unsafeUninitializedCapacity: Int(maxGroups)) { groups, initialized in
                let isComplete = getgrouplist(name, entry.pw_gid, groups.baseAddress, &count) >= 0
                initialized = isComplete ? Int(count) : 0
            }
            return (String(cString: name), groups)
        }
    }
}
