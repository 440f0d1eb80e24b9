import Etcd
import FoundationEssentials
import Logging
import Model
import TLS
import Team

/// The creation of a team on its first host, which gets the certificate authority.
struct TeamCreation: Sendable {
    let team: LocalTeam

    /// The time before the end of this host's certificate from which `run` issues a new one: one year.
    private static let renewalTime: TimeInterval = 365 * 86_400

    /// Creates the files and the registry of a team, or completes an earlier call.
    ///
    /// - Returns: The reason why the registry is not ready; nil after success. A later call tries again.
    func run(_ spec: TeamSpec) async throws -> String? {
        let membership = try await newMembership(spec)
        try team.folder.prepare()
        let authority = try certificateAuthority(of: membership.team)
        let identity = try identity(of: membership, authority)
        try saveAdministrator(spec.administrator, authority)
        try await membership.save(in: team.folder.path, logger: team.logger)
        return try await prepareRegistry(membership, identity, authority)
    }

    /// Returns the membership of the new team, or that of an earlier call with the servers of this one.
    private func newMembership(_ spec: TeamSpec) async throws -> TeamMembership {
        guard TeamSpec.nameLengths.contains(spec.team.text.utf8.count) else {
            throw Problem(.badRequest, "the name of a team has 1 to 32 bytes", hint: "patchbay team init lab")
        }
        let existing = try await team.membership()
        if let existing,
            existing.team != spec.team || !existing.isAuthority || spec.host ?? existing.host != existing.host
        {
            throw Problem(
                .conflict,
                "this broker is the host \(existing.host) of the team \(existing.team)",
                hint: "patchbay team leave"
            )
        }
        let host = try existing?.host ?? team.settings.hostName(spec.host)
        let servers = spec.etcd ?? existing?.etcd ?? team.settings.configuration.etcd
        guard !servers.isEmpty else {
            throw Problem(
                .badRequest,
                "the team needs an etcd server for its registry",
                hint: "patchbay team init \(spec.team) --etcd https://ADDRESS:2379"
            )
        }
        if let invalid = servers.first(where: { EtcdEndpoint($0) == nil }) {
            throw Problem(
                .badRequest,
                "\"\(SanitizedText(invalid))\" is not the URL of an etcd server",
                hint: "write https://ADDRESS:PORT, such as https://10.0.0.5:2379"
            )
        }
        return TeamMembership(team: spec.team, host: host, etcd: servers, authority: host)
    }

    /// Loads the certificate authority, or creates it.
    private func certificateAuthority(of name: SanitizedText) throws -> CertificateAuthority {
        if let authority = try team.folder.authority.load() { return authority }
        let authority = try CertificateAuthority(creatingFor: name)
        try team.folder.authority.save(authority)
        team.logger.notice("created the certificate authority of a team", metadata: ["team": "\(name)"])
        return authority
    }

    /// Loads the certificate of this host, or issues one. A certificate that ends soon is replaced; the key stays.
    private func identity(
        of membership: TeamMembership,
        _ authority: CertificateAuthority
    ) throws -> MemberIdentity {
        if let identity = try team.folder.identity.load(), identity.host == membership.host,
            identity.expiresAt > Date(timeIntervalSinceNow: Self.renewalTime)
        {
            return identity
        }
        let key = try team.folder.identity.loadOrCreateKey()
        let certificate = try authority.issue(.host(membership.host), request: key.signingRequest())
        let identity = try MemberIdentity(
            key: key,
            certificate: certificate.pem,
            authority: authority.certificatePEM
        )
        try team.folder.identity.save(identity)
        return identity
    }

    /// Saves the administrator of an etcd cluster, or issues the certificate of etcd's user root.
    private func saveAdministrator(_ spec: EtcdAdministratorSpec?, _ authority: CertificateAuthority) throws {
        if let spec {
            try team.folder.etcd.saveAuthority(spec.authority)
            return try team.folder.etcd.save(EtcdClientCertificate(certificate: spec.certificate, key: spec.key))
        }
        guard try team.folder.etcd.administrator() == nil else { return }
        let key = try MemberKey()
        let certificate = try authority.issue(.etcdRoot, request: key.signingRequest())
        try team.folder.etcd.save(EtcdClientCertificate(certificate: certificate.pem, key: key.pem))
    }

    /// Creates the users, the permissions and the first entries of the registry.
    ///
    /// - Returns: The reason why that failed; nil after success. The files are kept, and a later call tries again.
    private func prepareRegistry(
        _ membership: TeamMembership,
        _ identity: MemberIdentity,
        _ authority: CertificateAuthority
    ) async throws -> String? {
        let member = TeamMember(name: membership.host, key: identity.pin, addedAt: Date())
        do {
            let administration = try team.administration(membership, authority)
            try await administration.prepare()
            let entries = TeamAuthority(store: administration.store)
            try await entries.create(membership.team)
            try await administration.addHost(membership.host)
            try await entries.add(member)
            let members = try await entries.members()
            try await team.members().replace(with: members)
            return nil
        } catch {
            guard error is TeamStoreError || error is TeamError else { throw error }
            team.logger.warning("the registry of the team is not ready", metadata: ["reason": "\(error)"])
            return "\(error)"
        }
    }
}
