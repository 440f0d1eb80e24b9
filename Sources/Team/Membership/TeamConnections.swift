import FoundationEssentials
import Glibc
import Model
import SystemIO
import Transport

/// The connections of this host to the registry of the team.
struct TeamConnections: Sendable {
    let folder: TeamFolder
    let settings: TeamHostSettings

    /// The connection of this host to the team registry; nil before it has a certificate.
    func own(_ membership: TeamMembership) throws -> TeamRegistryConnection? {
        guard let identity = try folder.identity.load() else { return nil }
        return TeamRegistryConnection(
            servers: servers(membership),
            authority: try etcdAuthority() ?? identity.authorityPEM,
            certificate: identity.certificatePEM,
            key: identity.keyPEM
        )
    }

    /// The connection of etcd's administrator.
    func administrator(
        _ membership: TeamMembership,
        _ authority: CertificateAuthority
    ) throws -> TeamRegistryConnection {
        guard let administrator = try folder.etcd.administrator() else {
            throw Problem(
                .conflict,
                "the certificate of etcd's administrator is missing in \(folder.path)",
                hint: membership.initCommand
            )
        }
        return TeamRegistryConnection(
            servers: servers(membership),
            authority: try etcdAuthority() ?? authority.certificatePEM,
            certificate: administrator.certificate,
            key: administrator.key
        )
    }

    /// The etcd servers. The configuration has precedence, because it states the intent of the machine's owner.
    func servers(_ membership: TeamMembership) -> [String] {
        settings.configuration.etcd.isEmpty ? membership.etcd : settings.configuration.etcd
    }

    /// The authorities of the etcd servers, as PEM; nil if that is the authority of the team.
    func etcdAuthority() throws -> String? {
        guard let path = settings.configuration.etcdAuthority else { return try folder.etcd.authority() }
        do { return try String(contentsOfFile: path, encoding: .utf8) } catch {
            throw Problem(
                .conflict,
                "\(path), which team.etcd_ca names, cannot be read: \(SocketError.message(for: errno))",
                hint: "correct team.etcd_ca in the configuration, then sudo systemctl restart patchbayd"
            )
        }
    }
}
