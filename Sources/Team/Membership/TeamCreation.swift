import FoundationEssentials
import Logging
import Model
import Transport

/// The creation of a team on its first host, which gets the certificate authority.
struct TeamCreation: Sendable {
    let team: LocalTeam

    /// Creates the files and the registry of a team, or completes an earlier call.
    ///
    /// - Returns: The reason why the team registry is not ready; nil after success. A later call tries again.
    /// - Throws: `Problem`, `TeamError`, `TeamStoreError.userExists`, also for a registry of another team.
    func run(_ spec: TeamSpec) async throws -> String? {
        let membership = try await newMembership(spec)
        try team.folder.prepare()
        let authority = try certificateAuthority(of: membership.team)
        let members = try await team.members()
        let removed = members.removedKeys
        let identity = try identity(of: membership, authority, removed)
        let known = try await team.membership()?.etcd
        guard !members.all.isEmpty, known != membership.etcd || spec.administrator != nil else {
            try await save(membership, spec.administrator, authority)
            return try await prepareRegistry(membership, identity, authority, removed)
        }
        // The team works with its servers, so the new ones are tested first.
        if let reason = try await prepareRegistry(membership, identity, authority, removed, spec.administrator) {
            throw Problem(
                .unavailable,
                "the team \(spec.team) keeps its etcd servers, because those of the command are not ready: \(reason)",
                hint: "patchbay team"
            )
        }
        try await save(membership, spec.administrator, authority)
        return nil
    }

    private func save(
        _ membership: TeamMembership,
        _ administrator: EtcdAdministratorSpec?,
        _ authority: CertificateAuthority
    ) async throws {
        try saveAdministrator(administrator, authority)
        try await membership.save(in: team.folder.path, logger: team.logger)
    }

    /// Returns the membership of the new team, or that of an earlier call with the servers of this one.
    private func newMembership(_ spec: TeamSpec) async throws -> TeamMembership {
        guard TeamSpec.nameLengths.contains(spec.team.text.utf8.count) else {
            throw Problem(.badRequest, "the name of a team has 1 to 32 bytes", hint: "patchbay team init lab")
        }
        let existing = try await team.membership()
        // Without a registry, no other host knows the name of this one.
        let isComplete = try await !team.members().all.isEmpty
        if let existing {
            guard existing.isAuthority else { throw LocalTeam.missingAuthority(existing) }
            guard existing.team == spec.team, spec.host ?? existing.host == existing.host || !isComplete else {
                throw Problem(
                    .conflict,
                    existing.team == spec.team
                        ? "this broker is the host \(existing.host) of the team \(existing.team)"
                        : "this host has the team \(existing.team)",
                    hint: existing.initCommand
                )
            }
        }
        let host = try team.settings.hostName(spec.host ?? existing?.host)
        let servers = spec.etcd ?? existing?.etcd ?? team.settings.configuration.etcd
        guard !servers.isEmpty else {
            throw Problem(
                .badRequest,
                "the team needs an etcd server for its registry",
                hint: "patchbay team init \(spec.team.text.shellQuoted) --etcd https://ADDRESS:2379"
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
    ///
    /// A removed key is replaced, because the other hosts never accept it again.
    private func identity(
        of membership: TeamMembership,
        _ authority: CertificateAuthority,
        _ removed: Set<KeyPin>
    ) throws -> MemberIdentity {
        var key = try team.folder.identity.loadOrCreateKey()
        if removed.contains(key.pin) { key = try team.folder.identity.createKey() }
        if let identity = try team.folder.identity.load(), identity.host == membership.host,
            identity.renewsAt > Date()
        {
            return identity
        }
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
        let key = try CertificateKey()
        let certificate = try authority.issue(.etcdRoot, request: key.signingRequest())
        try team.folder.etcd.save(EtcdClientCertificate(certificate: certificate.pem, key: key.pem))
    }

    /// Creates the users, the permissions and the first entries of the team registry.
    ///
    /// - Returns: The reason why the team registry does not answer; nil after success. The files are kept, and a later
    ///   call tries again.
    /// - Throws: `Problem`, `TeamError`, `TeamStoreError.userExists` for what a later call would meet again.
    private func prepareRegistry(
        _ membership: TeamMembership,
        _ identity: MemberIdentity,
        _ authority: CertificateAuthority,
        _ removed: Set<KeyPin>,
        _ administrator: EtcdAdministratorSpec? = nil
    ) async throws -> String? {
        let member = TeamMember(name: membership.host, key: identity.pin, addedAt: Date())
        do {
            let administration = try team.administration(membership, authority, administrator)
            try await administration.prepare()
            let entries = TeamAuthority(store: administration.store)
            try await entries.create(membership.team)
            try await checkOwnership(of: entries, member, removed)
            try await administration.addHost(membership.host)
            try await entries.add(member, replacing: removed)
            // Read before the list, which is thus never older than the file.
            let saved = try await team.members()
            await saved.replace(with: try await entries.members())
            return nil
        } catch TeamError.store(let error) {
            return notReady(error)
        } catch let error as TeamStoreError {
            if case .userExists = error { throw error }
            return notReady(error)
        }
    }

    private func notReady(_ error: TeamStoreError) -> String {
        team.logger.warning("the registry of the team is not ready", metadata: ["reason": "\(error)"])
        return "\(error)"
    }

    /// Checks that the team registry has no members of another authority, which uses the same name of the team.
    ///
    /// The entry of this host may have a replaced key, for example in a backup of etcd. Without that entry, this host
    /// must know all members: another team has at least its own authority.
    private func checkOwnership(
        of entries: TeamAuthority,
        _ own: TeamMember,
        _ removed: Set<KeyPin>
    ) async throws {
        let members = try await entries.members()
        let saved = try await team.members()
        let hasOwnEntry = members.contains { $0.name == own.name && ($0.key == own.key || removed.contains($0.key)) }
        guard !hasOwnEntry, !members.allSatisfy({ saved.accepts($0.name, key: $0.key) }) else { return }
        throw Problem(
            .conflict,
            "these etcd servers have another team with this name, and its hosts "
                + members.map(\.name.text).joined(separator: ", "),
            hint: saved.all.isEmpty
                ? "patchbay team leave, then join that team, or create this one with other etcd servers"
                : "name the etcd servers of this team with --etcd"
        )
    }
}
