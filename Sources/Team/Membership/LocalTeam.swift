import FoundationEssentials
package import Logging
import Model
import Transport

/// The team of this host: its files, the settings, and the connections to its registry.
package struct LocalTeam: Sendable {
    let folder: TeamFolder
    let settings: TeamHostSettings
    let connections: TeamConnections
    let connector: any TeamRegistryConnector
    let logger: Logger

    /// - Parameters:
    ///   - folder: The folder of the team.
    ///   - settings: The settings of this host.
    ///   - connector: Connects to the team registry.
    ///   - logger: The operator's log.
    package init(
        _ folder: TeamFolder,
        settings: TeamHostSettings,
        connector: any TeamRegistryConnector,
        logger: Logger
    ) {
        self.folder = folder
        self.settings = settings
        connections = TeamConnections(folder: folder, settings: settings)
        self.connector = connector
        self.logger = logger
    }

    /// The saved membership; nil without a team.
    func membership() async throws(TeamError) -> TeamMembership? {
        try await TeamMembership.load(from: folder.path, logger: logger)
    }

    /// Returns the saved membership.
    ///
    /// - Throws: `Problem` without a team.
    func requiredMembership() async throws -> TeamMembership {
        guard let membership = try await membership() else {
            throw Problem(
                .conflict,
                "this broker has no team",
                hint: "patchbay team init NAME, or patchbay team join - with a string of patchbay team invite"
            )
        }
        return membership
    }

    /// Returns the membership and the certificate authority.
    ///
    /// - Throws: `Problem` on a host without the authority.
    func requiredAuthority() async throws -> (TeamMembership, CertificateAuthority) {
        let membership = try await requiredMembership()
        guard membership.isAuthority, let authority = try folder.authority.load() else {
            throw Self.missingAuthority(membership)
        }
        return (membership, authority)
    }

    /// Renews the certificate of this host on the authority, and before that the authority's own one if it is due.
    func ownRenewal(_ request: String, at now: Date = Date()) async throws -> TeamRenewal {
        var (membership, authority) = try await requiredAuthority()
        if let renewed = try authority.renewed(at: now) {
            try folder.authority.save(renewed)
            authority = renewed
            logger.notice(
                "renewed the certificate of the team's authority; hosts get it when they renew theirs",
                metadata: ["ends": "\(renewed.expiresAt.formatted(.iso8601))"]
            )
        }
        let certificate = try authority.issue(.host(membership.host), request: request, now: now)
        return TeamRenewal(certificate: certificate.pem, authority: authority.certificatePEM)
    }

    /// The problem of a command that needs the certificate authority.
    static func missingAuthority(_ membership: TeamMembership) -> Problem {
        Problem(
            .conflict,
            "only the host \(membership.authority) has the certificate authority of the team \(membership.team)",
            hint: "run the command on \(membership.authority)"
        )
    }

    /// The problem of a host that the team has removed. Its broker goes on without the team.
    static func removal(of membership: TeamMembership) -> Problem {
        Problem(
            .conflict,
            "\(membership.host) was removed from the team",
            hint: membership.isAuthority ? membership.initCommand : "patchbay team leave"
        )
    }

    /// The saved members.
    func members() async throws -> TeamMembers {
        try await TeamMembers(in: folder.path, logger: logger)
    }

    /// Reads the files with which the broker takes part in the team.
    ///
    /// - Throws: The reason why the broker cannot take part.
    func participation(
        _ membership: TeamMembership
    ) async throws -> (identity: MemberIdentity, members: TeamMembers, store: any TeamStore) {
        guard let identity = try folder.identity.load(), let connection = try connections.own(membership) else {
            throw Problem(
                .conflict,
                "this host has no certificate of its team",
                hint: membership.isAuthority
                    ? membership.initCommand : "patchbay team join - with a string of patchbay team invite"
            )
        }
        let members = try await members()
        // Without any member, the team registry has lost its entries.
        guard members.all.isEmpty || members.accepts(membership.host, key: identity.pin) else {
            throw Self.removal(of: membership)
        }
        return (identity, members, try connector.store(connection))
    }

    /// Returns the team registry with the permissions of etcd's administrator, which is `spec` or the saved one.
    func administration(
        _ membership: TeamMembership,
        _ authority: CertificateAuthority,
        _ spec: EtcdAdministratorSpec? = nil
    ) throws -> any TeamRegistryAdministration {
        if let spec {
            let servers = connections.servers(membership)
            return try connector.administration(TeamRegistryConnection(spec, servers: servers))
        }
        return try connector.administration(connections.administrator(membership, authority))
    }
}
