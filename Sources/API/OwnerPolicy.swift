import Glibc

/// Whose processes may do everything, on the unix socket: root, the broker's own user, and a group that people are put in.
package struct OwnerPolicy: Sendable {
    /// The group's name.
    package static let groupName = "patchbay"

    package let user: UInt32
    /// Nil where there is no such group.
    package let group: UInt32?

    package init(user: UInt32, group: UInt32?) {
        self.user = user
        self.group = group
    }

    /// Looks the group up. Blocks; for the start only.
    package static func ofThisMachine() -> OwnerPolicy {
        // Root's own group is nobody's favour: it would match what SO_PEERGROUPS leaves empty.
        let group = getgrnam(groupName).map { UInt32($0.pointee.gr_gid) }
        return OwnerPolicy(user: geteuid(), group: group == 0 ? nil : group)
    }
}
