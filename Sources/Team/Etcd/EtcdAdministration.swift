package import Model
import SwiftProtobuf

/// Administers the users and roles of etcd for a team. Every call may be repeated.
///
/// A user has no password. A client with a certificate is the user with the CN of the certificate, so the client needs
/// the certificate of `root`.
package struct EtcdAdministration: Sendable {
    /// The name of the user and of the role with all permissions. etcd requires both.
    package static let root = "root"

    private let client: EtcdClient

    package init(_ client: EtcdClient) { self.client = client }

    /// Creates the user `root` with its role, and then enables authentication.
    ///
    /// From then on, etcd refuses all clients without the certificate of a user.
    package func enableAuthentication() async throws(TeamStoreError) {
        try await addRole(Self.root, [])
        try await addUser(Self.root, role: Self.root)
        _ = try await client.call(.enableAuthentication, EtcdAuthEnableRequest())
    }

    /// Creates the user and the role of a host. The host may read the team registry and write its own entries and
    /// claims.
    ///
    /// The role comes first. It marks the user as one that Patchbay created.
    ///
    /// - Throws: `TeamStoreError.userExists` if etcd has a user with the name of the host, and not the role.
    package func addHost(_ host: HostName) async throws(TeamStoreError) {
        try checkUser(host.text)
        if try await !hasRole(host), try await users().contains(host.text) { throw .userExists(name: host.text) }
        try await addRole(Self.role(of: host), Self.grants(of: host))
        try await addUser(host.text, role: Self.role(of: host))
    }

    /// Deletes the user and the role of a host. Its next read or write is denied.
    ///
    /// Without the role, Patchbay did not create the user with the name of the host. Such a user stays.
    ///
    /// etcd checks the permission of a watch only at its beginning, and that of a renewal never. So a watch of the host
    /// goes on, and its entries stay until they are deleted.
    ///
    /// - Returns: False without the role.
    @discardableResult
    package func removeHost(_ host: HostName) async throws(TeamStoreError) -> Bool {
        try checkUser(host.text)
        guard try await hasRole(host) else { return false }
        try await ignoring([.userNotFound]) { () async throws(TeamStoreError) in
            _ = try await client.call(.deleteUser, .with { $0.name = host.text })
        }
        try await ignoring([.roleNotFound]) { () async throws(TeamStoreError) in
            _ = try await client.call(.deleteRole, .with { $0.role = Self.role(of: host) })
        }
        return true
    }

    /// Returns the names of all users.
    package func users() async throws(TeamStoreError) -> [String] {
        try await client.call(.users, EtcdAuthUserListRequest()).users
    }

    /// Returns the state of the server that the client uses.
    package func status() async throws(TeamStoreError) -> EtcdStatus {
        let status = try await client.call(.status, EtcdStatusRequest())
        return EtcdStatus(hasLeader: status.leader != 0, errors: status.errors)
    }

    static func role(of host: HostName) -> String { "patchbay-host-\(host)" }

    static func grants(of host: HostName) -> [EtcdGrant] {
        [
            EtcdGrant(.read, EtcdKeyRange(prefix: TeamKey.root)),
            EtcdGrant(.readwrite, EtcdKeyRange(key: TeamKey.host(host).text)),
            EtcdGrant(.readwrite, EtcdKeyRange(prefix: TeamKey.endpoints(of: host))),
            EtcdGrant(.readwrite, EtcdKeyRange(prefix: TeamKey.devices(of: host))),
            EtcdGrant(.readwrite, EtcdKeyRange(prefix: TeamKey.claims)),
        ]
    }

    private func hasRole(_ host: HostName) async throws(TeamStoreError) -> Bool {
        try await client.call(.roles, EtcdAuthRoleListRequest()).roles.contains(Self.role(of: host))
    }

    private func checkUser(_ name: String) throws(TeamStoreError) {
        guard name != Self.root else {
            throw .failed(reason: "the name \(name) is reserved for the administrator of etcd")
        }
    }

    private func addUser(_ name: String, role: String) async throws(TeamStoreError) {
        try await ignoring([.userExists]) { () async throws(TeamStoreError) in
            _ = try await client.call(
                .addUser,
                .with {
                    $0.name = name
                    $0.options.noPassword = true
                }
            )
        }
        _ = try await client.call(
            .grantRole,
            .with {
                $0.user = name
                $0.role = role
            }
        )
    }

    private func addRole(_ name: String, _ grants: [EtcdGrant]) async throws(TeamStoreError) {
        try await ignoring([.roleExists]) { () async throws(TeamStoreError) in
            _ = try await client.call(.addRole, .with { $0.name = name })
        }
        for grant in grants {
            _ = try await client.call(
                .grantPermission,
                .with {
                    $0.name = name
                    $0.perm.permType = grant.type
                    $0.perm.key = grant.range.key
                    $0.perm.rangeEnd = grant.range.end
                }
            )
        }
    }

    /// An error that says that a change was already made. The texts are those of etcd's `rpctypes/error.go`.
    private enum Existing: String {
        case userExists = "etcdserver: user name already exists"
        case roleExists = "etcdserver: role name already exists"
        case userNotFound = "etcdserver: user name not found"
        case roleNotFound = "etcdserver: role name not found"
    }

    private func ignoring(
        _ errors: [Existing],
        _ change: () async throws(TeamStoreError) -> Void
    ) async throws(TeamStoreError) {
        do { try await change() } catch {
            guard case .failed(let reason) = error, errors.contains(where: { $0.rawValue == reason }) else {
                throw error
            }
        }
    }
}

/// A permission of a role for a range of keys.
struct EtcdGrant: Hashable {
    let type: EtcdPermission.TypeEnum
    let range: EtcdKeyRange

    init(_ type: EtcdPermission.TypeEnum, _ range: EtcdKeyRange) {
        self.type = type
        self.range = range
    }
}
