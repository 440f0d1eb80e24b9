import AccessControl
import FoundationEssentials
import Logging
import Model
import Transport

/// The admission of hosts to the team. Works on the host that has the certificate authority.
struct HostAdmission: Sendable {
    private let team: LocalTeam
    private let running: @Sendable () -> TeamSetup.Running?
    private let invites: TeamInvites

    /// - Parameters:
    ///   - team: The team of this host.
    ///   - running: Returns the team with which the broker listens for other hosts; nil if it does not listen.
    init(to team: LocalTeam, running: @escaping @Sendable () -> TeamSetup.Running?) {
        self.team = team
        self.running = running
        invites = TeamInvites(in: team.folder, logger: team.logger)
    }

    /// The invites with which further hosts may join.
    var openInvites: [OpenTeamInvite] { get async throws { try await invites.open } }

    /// Ends an open invite.
    ///
    /// - Throws: `Problem` if there is no such invite.
    func revoke(_ id: String) async throws {
        guard try await invites.revoke(id) else {
            throw Problem(.notFound, "there is no open invite \"\(SanitizedText(id))\"", hint: "patchbay team invites")
        }
        team.logger.notice("revoked an invite for hosts", metadata: ["invite": "\(SanitizedText(id))"])
    }

    /// Creates an invite for other hosts.
    func invite(_ spec: TeamInviteSpec) async throws -> TeamInvite {
        let (membership, _) = try await team.requiredAuthority()
        guard let running = running(), running.membership == membership,
            let identity = try team.folder.identity.load(), identity.pin == running.key
        else {
            throw Problem(
                .conflict,
                "the broker does not listen for other hosts yet",
                hint: "patchbay team"
            )
        }
        guard let text = spec.address ?? team.settings.addresses().first, let address = TeamAddress(text) else {
            throw Problem(
                .badRequest,
                spec.address.map { "\"\(SanitizedText($0))\" is not a host name or an address" }
                    ?? "this machine has no address that other hosts may reach",
                hint: "name its address: patchbay team invite --address ADDRESS"
            )
        }
        try Self.check(spec)
        let (token, expiresAt) = try await invites.create(spec)
        let pairing = TeamPairingString(
            host: address.host,
            port: address.port ?? team.settings.configuration.port,
            pin: identity.pin,
            invite: token.reveal()
        )
        team.logger.notice("created an invite for a host", metadata: ["invite": "\(token.id)"])
        return TeamInvite(pairing: pairing.description, expiresAt: expiresAt)
    }

    private static func check(_ spec: TeamInviteSpec) throws {
        let names = spec.names ?? []
        let isValid =
            TeamInviteSpec.hostCounts.contains(spec.hosts ?? 1)
            && TeamInviteSpec.lifetimes.contains(spec.seconds ?? TeamInviteSpec.standardSeconds)
            && names.count <= TeamInviteSpec.nameLimit && names.allSatisfy(TeamInviteSpec.isPattern)
        guard !isValid else { return }
        throw Problem(
            .badRequest,
            "an invite is for 1 to \(TeamInviteSpec.hostCounts.upperBound) hosts, for at most 24 h, and for at most "
                + "\(TeamInviteSpec.nameLimit) names with a-z, 0-9, hyphens and *",
            hint: "patchbay team invite --hosts 50 --for 24h --host 'lab*'"
        )
    }

    /// Admits the host that holds an invite. The invite stays valid if the host certainly was not admitted.
    ///
    /// - Returns: The response to the host, and the number of hosts that have used the invite.
    func admit(_ spec: TeamMemberSpec) async throws -> (admission: TeamAdmission, useCount: Int) {
        guard let token = try? Token(spec.invite), token.kind == .invite, let membership = try await team.membership(),
            membership.isAuthority, let record = try await invites.spend(token, by: spec.host)
        else {
            throw Problem(
                .unauthorized,
                "the invite is not valid for this host: it is unknown, was used, has expired, is for other names, or was "
                    + "tried with wrong secrets",
                hint: "ask for a new one: patchbay team invite, on the authority of the team"
            )
        }
        do {
            return (try await admission(spec, membership), record.admitted.count)
        } catch let error as TeamError where error.mayFollowAdmission {
            // A second host could otherwise join with the same invite.
            throw error
        } catch {
            try await invites.restore(spec.host, in: record)
            throw error
        }
    }

    /// Issues a new certificate for the present key of a member.
    ///
    /// - Throws: `Problem` for another key, and for a host that is no member.
    func renew(_ spec: TeamRenewalSpec, of host: HostName) async throws -> TeamRenewal {
        let (_, authority) = try await team.requiredAuthority()
        let certificate = try authority.issue(.host(host), request: spec.request)
        guard try await team.members().accepts(host, key: certificate.key) else {
            throw Problem(.forbidden, "the key is not that of the member \(host)")
        }
        team.logger.notice("renewed the certificate of a host", metadata: ["host": "\(host)"])
        return TeamRenewal(certificate: certificate.pem, authority: authority.certificatePEM)
    }

    /// Issues the certificate of a new host, and adds the host to the team registry.
    ///
    /// A host with the same name and the same key is admitted again, because its first response may have been lost.
    private func admission(_ spec: TeamMemberSpec, _ membership: TeamMembership) async throws -> TeamAdmission {
        let (_, authority) = try await team.requiredAuthority()
        guard spec.host != membership.host else { throw TeamError.nameTaken(spec.host) }
        let certificate = try authority.issue(.host(spec.host), request: spec.request)
        let member = TeamMember(name: spec.host, key: certificate.key, addedAt: Date())
        guard try await !team.members().removedKeys.contains(certificate.key) else {
            throw Problem(
                .forbidden,
                "the key of the host \(spec.host) was removed from the team",
                hint: "run patchbay team leave on that host, then join with a new key"
            )
        }
        let etcdAuthority = try team.connections.etcdAuthority()
        let administration = try team.administration(membership, authority)
        let entries = TeamAuthority(store: administration.store)
        // Without an answer to this question, nothing has been written, and the invite stays valid.
        let existing = try await Problem.ofTeam { try await entries.members() }
        guard existing.contains(where: { $0.name == membership.host }) else {
            throw Problem(
                .conflict,
                "the registry of the team \(membership.team) is not complete, so no host can join",
                hint: "on \(membership.host): \(membership.initCommand), and join again"
            )
        }
        // The user comes first, because etcd may refuse the name. For a member with this name, it stays as it is.
        try await administration.addHost(member.name)
        try await entries.add(member)
        let members = try await entries.members()
        team.logger.notice(
            "admitted a host to the team",
            metadata: ["host": "\(spec.host)", "key": "\(certificate.key)"]
        )
        return TeamAdmission(
            team: membership.team,
            certificate: certificate.pem,
            authority: authority.certificatePEM,
            authorityHost: membership.host,
            etcd: team.connections.servers(membership),
            etcdAuthority: etcdAuthority,
            members: members
        )
    }
}

extension TeamError {
    /// True for an error of the write that admits a host, and of what follows: the team registry may have made the
    /// write.
    fileprivate var mayFollowAdmission: Bool { if case .store = self { true } else { false } }
}
