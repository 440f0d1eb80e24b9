package import Logging
package import Model
import SystemIO

/// The membership of this host in a team: the file `membership.json` in the folder of the team.
package struct TeamMembership: Hashable, Sendable, Codable {
    /// The name of the team.
    package var team: SanitizedText
    /// The name of this host in the team.
    package var host: HostName
    /// The URLs of the etcd servers.
    package var etcd: [String]
    /// The addresses of this host's team listener, as `ADDRESS:PORT`. Empty for the addresses of the machine.
    package var addresses: [String]
    /// The host with the certificate authority.
    package var authority: HostName
    /// The addresses of the authority's team listener, as `ADDRESS:PORT`. Empty on the authority itself.
    package var authorityAddresses: [String]

    package init(
        team: SanitizedText,
        host: HostName,
        etcd: [String],
        addresses: [String] = [],
        authority: HostName,
        authorityAddresses: [String] = []
    ) {
        self.team = team
        self.host = host
        self.etcd = etcd
        self.addresses = addresses
        self.authority = authority
        self.authorityAddresses = authorityAddresses
    }

    /// True on the host with the certificate authority.
    package var isAuthority: Bool { host == authority }

    private static let fileName = "membership"

    /// Reads the membership from the folder of the team. Nil if the host belongs to no team.
    ///
    /// - Throws: `TeamError.state`.
    package static func load(from folder: String, logger: Logger) async throws(TeamError) -> TeamMembership? {
        do {
            return try await StateFile<TeamMembership>(fileName, in: folder, logger: logger).read()
        } catch { throw .state(error) }
    }

    /// Writes the membership. Returns after the file is on disk.
    ///
    /// - Throws: `TeamError.state`.
    package func save(in folder: String, logger: Logger) async throws(TeamError) {
        do {
            try await StateFile<TeamMembership>(Self.fileName, in: folder, logger: logger).write(self)
        } catch { throw .state(error) }
    }
}

/// The entry `meta` of a team's registry.
package struct TeamMeta: Hashable, Sendable, Codable {
    /// The schema that this version reads and writes.
    package static let currentSchema = 1

    package let schema: Int
    package let team: SanitizedText

    package init(schema: Int = currentSchema, team: SanitizedText) {
        self.schema = schema
        self.team = team
    }

    /// Checks that the team registry belongs to a team.
    ///
    /// - Throws: `TeamError.wrongTeam`, `.newerSchema`.
    static func check(_ meta: TeamMeta?, isOf team: SanitizedText) throws(TeamError) {
        guard let meta else { throw .wrongTeam(expected: team, found: nil) }
        guard meta.schema == currentSchema else { throw .newerSchema(meta.schema) }
        guard meta.team == team else { throw .wrongTeam(expected: team, found: meta.team) }
    }
}
