package import Model

/// The servers and credentials of a host, or of the administrator, for the registry of a team.
package struct TeamRegistryConnection: Hashable, Sendable {
    /// The URLs of the servers, as `https://HOST:PORT`.
    let servers: [String]
    /// The authorities of the servers, as PEM.
    let authority: String
    /// The client's certificate, as PEM.
    let certificate: String
    /// The client's key, as PEM. A secret.
    let key: String
}

extension TeamRegistryConnection {
    /// The connection of the administrator of a cluster that has its own authority.
    init(_ administrator: EtcdAdministratorSpec, servers: [String]) {
        self.init(
            servers: servers,
            authority: administrator.authority,
            certificate: administrator.certificate,
            key: administrator.key
        )
    }
}

/// The users, permissions and entries of the team registry, with the permissions of etcd's administrator.
package protocol TeamRegistryAdministration: Sendable {
    /// The entries of the team registry.
    var store: any TeamStore { get }

    /// Creates the administrator as a user, and turns on the check of permissions. Does nothing if that was done
    /// before.
    func prepare() async throws(TeamStoreError)

    /// Creates the user and the role of a host. Does nothing if they exist.
    ///
    /// - Throws: `TeamStoreError.userExists` if the name is that of a user whom Patchbay did not create.
    func addHost(_ host: HostName) async throws(TeamStoreError)

    /// Deletes the user and the role of a host. Does nothing if Patchbay created none.
    ///
    /// - Returns: True if Patchbay had created one.
    @discardableResult
    func removeHost(_ host: HostName) async throws(TeamStoreError) -> Bool
}

/// Connects to the team registry.
package protocol TeamRegistryConnector: Sendable {
    /// Returns the team registry with the permissions of the administrator. Its connections close with the last
    /// reference.
    func administration(
        _ connection: TeamRegistryConnection
    ) throws(TeamStoreError) -> any TeamRegistryAdministration

    /// Returns the team registry with the permissions of a host. Its connections close with the last reference.
    func store(_ connection: TeamRegistryConnection) throws(TeamStoreError) -> any TeamStore

    /// Asks each server whether it answers.
    func health(_ connection: TeamRegistryConnection) async -> [TeamServerHealth]
}

/// The answer of a server of the team registry about itself.
package struct TeamServerHealth: Hashable, Sendable {
    let server: TeamRegistryServer
    /// The seconds by which the clock of this host is ahead of the server's; negative if it is behind. Nil if it is
    /// correct or unknown.
    var clockSkew: Int?

    init(url: String, problem: String?, clockSkew: Int? = nil) {
        server = TeamRegistryServer(url: url, problem: problem)
        self.clockSkew = clockSkew
    }
}
