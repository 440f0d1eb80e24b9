import FoundationEssentials
import Logging
import Model
import Transport

/// The join of this host to the team of another host.
struct TeamJoin: Sendable {
    let team: LocalTeam
    /// Sends the request to the host with the certificate authority.
    let authority: any TeamAuthorityClient

    /// Asks the authority for a certificate, and saves the files of the team.
    func run(_ spec: TeamJoinSpec) async throws {
        let pairing: TeamPairingString
        do { pairing = try TeamPairingString(spec.pairing) } catch {
            throw Problem(
                .badRequest,
                "the text is not a pairing string of a team (\(error))",
                hint: "copy the whole line of patchbay team invite"
            )
        }
        let host = try team.settings.hostName(spec.host)
        if let existing = try await team.membership(), existing.isAuthority || existing.host != host {
            throw Problem(
                .conflict,
                "this broker is the host \(existing.host) of the team \(existing.team)",
                hint: "patchbay team leave"
            )
        }
        try team.folder.prepare()
        var key = try team.folder.identity.loadOrCreateKey()
        let admission: TeamAdmission
        do { admission = try await self.admission(of: host, key: key, pairing) } catch let problem as Problem
            where problem.code == .forbidden
        {
            // The key was removed from the team, for example after the loss of its registry.
            key = try team.folder.identity.createKey()
            admission = try await self.admission(of: host, key: key, pairing)
        }
        try await save(admission, as: host, key: key, pairing)
        team.logger.notice("joined a team", metadata: ["team": "\(admission.team)", "host": "\(host)"])
    }

    /// Asks the authority for a certificate.
    private func admission(
        of host: HostName,
        key: CertificateKey,
        _ pairing: TeamPairingString
    ) async throws -> TeamAdmission {
        let spec = TeamMemberSpec(invite: pairing.invite, host: host, request: try key.signingRequest())
        return try await authority.admit(spec, at: pairing)
    }

    /// Checks the certificate, and saves the files. The membership is the last one: with it, the host belongs to the team.
    private func save(
        _ admission: TeamAdmission,
        as host: HostName,
        key: CertificateKey,
        _ pairing: TeamPairingString
    ) async throws {
        let identity = try MemberIdentity(
            key: key,
            certificate: admission.certificate,
            authority: admission.authority
        )
        let authority = admission.members.first { $0.name == admission.authorityHost }
        guard identity.host == host, authority?.key == pairing.pin,
            admission.etcd.allSatisfy({ EtcdEndpoint($0) != nil })
        else {
            throw Problem(
                .unavailable,
                "the answer of the team's authority contradicts itself; this host has not joined"
            )
        }
        if let pem = admission.etcdAuthority {
            try team.folder.etcd.saveAuthority(pem)
        } else {
            try team.folder.etcd.deleteAuthority()
        }
        try await team.members().join(admission.members, isSameTeam: try await isOwnTeam(admission))
        try team.folder.identity.save(identity)
        let membership = TeamMembership(
            team: admission.team,
            host: host,
            etcd: admission.etcd,
            authority: admission.authorityHost,
            authorityAddresses: [TeamAddress(host: pairing.host, port: pairing.port).description]
        )
        try await membership.save(in: team.folder.path, logger: team.logger)
    }

    /// Returns whether this host belongs to the team that admits it, and has only renewed its certificate.
    ///
    /// A new team may have the name and the host of a lost one. So the certificates of the authorities are compared.
    private func isOwnTeam(_ admission: TeamAdmission) async throws -> Bool {
        guard let existing = try await team.membership(), existing.team == admission.team,
            existing.authority == admission.authorityHost
        else { return false }
        guard let known = try team.folder.identity.authority() else { return false }
        return CertificateAuthority.isSame(known, admission.authority)
    }
}
