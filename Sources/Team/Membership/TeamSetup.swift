import FoundationEssentials
import Logging
package import Model
import Transport

/// The commands of `patchbay team`.
package actor TeamSetup {
    /// The state of the running team.
    package struct Running: Sendable {
        /// The membership with which the broker takes part.
        let membership: TeamMembership
        let key: KeyPin
        /// The certificate that the broker uses, as PEM.
        let certificate: @Sendable () -> String
        /// The end of that certificate.
        var expiresAt: @Sendable () -> Date = { .distantFuture }
        /// The beginning of that certificate.
        var startsAt: @Sendable () -> Date = { .distantPast }
        let snapshot: @Sendable () -> TeamSnapshot
        /// The entry of this host.
        let own: @Sendable () -> TeamHost
        var listenerError = TeamListenerError()
        /// The servers of the team registry with their problems at the last question.
        var servers: @Sendable () -> [TeamServerHealth] = { [] }
    }

    private let team: LocalTeam
    private let authority: any TeamAuthorityClient
    private let participation: any TeamParticipation
    private let admission: HostAdmission
    /// True while a command changes the files of the team. A second one is refused.
    private var isChanging = false

    /// - Parameters:
    ///   - team: The team of this host.
    ///   - authority: Sends the request of a join.
    ///   - participation: The team in which the broker takes part.
    package init(
        _ team: LocalTeam,
        authority: any TeamAuthorityClient = RemoteTeamAuthority(),
        _ participation: any TeamParticipation
    ) {
        self.team = team
        self.authority = authority
        self.participation = participation
        admission = HostAdmission(to: team) { participation.state }
    }

    private var running: Running? { participation.state }

    /// The servers of the team registry, as far as the running team knows them.
    var registryServers: [TeamServerHealth] { running?.servers() ?? [] }

    /// The problem of the running team, or of a broker that started without the saved team.
    func problem() async throws -> Problem? {
        let membership = try await team.membership()
        guard membership != nil || running != nil else { return nil }
        guard try isRestartNeeded(membership, team.folder.identity.load()) else {
            return try await running?.problem(members: team.members())
        }
        if let membership, let problem = await startProblem(membership) { return problem }
        return Problem(
            .conflict,
            "the team or the certificate of this host has changed since the start of the broker",
            hint: "sudo systemctl restart patchbayd"
        )
    }

    /// Returns whether the saved team or certificate is not the one with which the broker takes part, after a change by hand.
    private func isRestartNeeded(_ membership: TeamMembership?, _ identity: MemberIdentity?) -> Bool {
        running?.membership != membership || running?.certificate() != identity?.certificatePEM
    }

    /// Returns the reason why the broker cannot take part in the saved team, also after a restart; nil if it can.
    private func startProblem(_ membership: TeamMembership) async -> Problem? {
        await Problem.found {
            _ = try await team.participation(membership)
            return nil
        }
    }

    /// Runs a change of the team's files, one at a time.
    ///
    /// - Throws: `Problem`, also for errors of the parts.
    private func changing<Value>(_ body: () async throws -> Value) async throws -> Value {
        guard !isChanging else {
            throw Problem(.conflict, "another command changes the team now", hint: "try again when it has ended")
        }
        isChanging = true
        defer { isChanging = false }
        return try await Problem.ofTeam { try await body() }
    }
}

/// The commands.
extension TeamSetup {
    package func status() async throws -> TeamStatus {
        try await Problem.ofTeam {
            guard let membership = try await team.membership() else { return TeamStatus(restartNeeded: running != nil) }
            let identity = try team.folder.identity.load()
            let connection = try team.connections.own(membership)
            let servers = if let connection { await team.connector.health(connection) } else { [TeamServerHealth]() }
            let restartNeeded = isRestartNeeded(membership, identity)
            let problem =
                try await restartNeeded
                ? startProblem(membership) : running?.problem(members: team.members()) ?? servers.clockProblem
            return TeamStatus(
                team: membership.team,
                host: membership.host,
                authority: membership.authority,
                key: identity?.pin,
                certificateExpiresAt: identity?.expiresAt,
                hosts: try await hosts(membership),
                etcd: servers.map(\.server),
                staleSince: running?.snapshot().staleSince,
                restartNeeded: restartNeeded && problem == nil,
                problem: problem?.detail,
                hint: problem?.hint
            )
        }
    }

    /// The members with the state of their brokers. Before the first list of the team registry, the saved members.
    private func hosts(_ membership: TeamMembership) async throws -> [TeamHostStatus] {
        let snapshot = running?.snapshot() ?? TeamSnapshot(staleSince: nil)
        guard let running, running.membership == membership, !snapshot.members.isEmpty else {
            return try await team.members().all.map {
                TeamHostStatus($0, host: nil, isKnown: false)
            }
        }
        return snapshot.members.values.sorted { $0.name < $1.name }.map { member in
            TeamHostStatus(
                member,
                host: member.name == membership.host ? running.own() : snapshot.hosts[member.name]
            )
        }
    }

    package func create(_ spec: TeamSpec) async throws -> TeamStatus {
        let problem = try await changing { try await TeamCreation(team: team).run(spec) }
        await participation.useSavedTeam()
        let command = TeamMembership.initCommand(spec.team)
        let files = "patchbay team certificate NAME ADDRESS --out FOLDER"
        var status = try await status()
        (status.problem, status.hint) = (problem, nil)
        if problem != nil {
            status.hint = "start etcd with the files of \(files), then run \(command)"
        } else if let server = status.etcd.first?.problem, !status.etcd.contains(where: { $0.problem == nil }) {
            // The administrator of a cluster with its own authority has access, and this host has none.
            status.problem = server
            status.hint =
                "append ca.pem of \(files) to the file of etcd's --trusted-ca-file, restart etcd, then run \(command)"
        } else {
            // The team registry has just answered. The watcher reads it again within 2 s.
            status.staleSince = nil
        }
        return status
    }

    package func join(_ spec: TeamJoinSpec) async throws -> TeamStatus {
        try await changing { try await TeamJoin(team: team, authority: authority).run(spec) }
        await participation.useSavedTeam()
        return try await status()
    }

    package func invite(_ spec: TeamInviteSpec) async throws -> TeamInvite {
        try await Problem.ofTeam { try await admission.invite(spec) }
    }

    package func invites() async throws -> [OpenTeamInvite] {
        try await Problem.ofTeam {
            _ = try await team.requiredAuthority()
            return try await admission.openInvites
        }
    }

    package func revoke(invite id: String) async throws {
        try await Problem.ofTeam {
            _ = try await team.requiredAuthority()
            try await admission.revoke(id)
        }
    }

    package func admit(_ spec: TeamMemberSpec) async throws -> (admission: TeamAdmission, useCount: Int) {
        try await Problem.ofTeam { try await admission.admit(spec) }
    }

    /// Issues a new certificate for the key of a member, which has proved it with its present certificate.
    package func renew(_ spec: TeamRenewalSpec, of host: HostName) async throws -> TeamRenewal {
        try await Problem.ofTeam { try await admission.renew(spec, of: host) }
    }

    package func remove(_ host: HostName, onRemoval: @Sendable () async throws -> Void) async throws {
        try await changing { try await HostRemoval(from: team).run(host, onRemoval: onRemoval) }
    }

    package func issue(_ spec: TeamCertificateSpec) async throws -> TeamCertificate {
        try await Problem.ofTeam {
            let (_, authority) = try await team.requiredAuthority()
            let server = try authority.issue(.etcdServer(addresses: spec.addresses), request: spec.request)
            let peer = try authority.issue(.etcdPeer(addresses: spec.addresses), request: spec.request)
            team.logger.notice("issued the certificates of an etcd node", metadata: ["addresses": "\(spec.addresses)"])
            return TeamCertificate(
                certificate: server.pem,
                peerCertificate: peer.pem,
                authority: authority.certificatePEM
            )
        }
    }

    @discardableResult
    package func leave() async throws -> SanitizedText {
        try await changing {
            let membership = try await team.requiredMembership()
            if membership.isAuthority {
                let registry = try await registry(membership)
                try await checkAlone(membership, registry?.members ?? [])
                await participation.end()
                if let registry { await deleteTeam(membership, registry.administration) }
            } else if let connection = try team.connections.own(membership) {
                await participation.end()
                // Without an answer, the entries end with the session lease of the broker.
                let deletion = TeamStoreWrite.deletion(of: membership.host)
                _ = try? await team.connector.store(connection).write(deletion, if: nil)
            }
            try team.folder.delete()
            team.logger.notice("left the team", metadata: ["team": "\(membership.team)"])
            return membership.team
        }
    }

    /// Checks that the team has no other host, because its certificate authority ends with this one.
    ///
    /// - Parameters:
    ///   - membership: The membership of this host.
    ///   - listed: The members in the team registry. The saved ones may lack a host that has just joined.
    /// - Throws: `Problem` with the other hosts.
    private func checkAlone(_ membership: TeamMembership, _ listed: [TeamMember]) async throws {
        let members = try await team.members().all + listed
        let others = Set(members.map(\.name)).subtracting([membership.host]).sorted()
        guard others.isEmpty else {
            throw Problem(
                .conflict,
                "this host has the certificate authority of the team, which still has "
                    + others.map(\.text).joined(separator: ", "),
                hint: "remove each of them first: patchbay team remove HOST"
            )
        }
    }

    /// Returns the team registry and its members, if it answers and has this team.
    ///
    /// Without an answer the entries stay, and are of no use without the certificate authority. A registry with members
    /// of another authority stays as it is.
    private func registry(
        _ membership: TeamMembership
    ) async throws -> (administration: any TeamRegistryAdministration, members: [TeamMember])? {
        guard let authority = try team.folder.authority.load() else { return nil }
        let connection = try team.connections.administrator(membership, authority)
        let key = try team.folder.identity.load()?.pin
        guard let administration = try? team.connector.administration(connection),
            let members = try? await TeamAuthority(store: administration.store).members(),
            members.isEmpty || members.contains(where: { $0.name == membership.host && $0.key == key })
        else { return nil }
        return (administration, members)
    }

    /// Deletes all entries of the team and the user of this host.
    private func deleteTeam(_ membership: TeamMembership, _ administration: any TeamRegistryAdministration) async {
        _ = try? await administration.store.write([.deleteAll(prefix: TeamKey.root)], if: nil)
        _ = try? await administration.removeHost(membership.host)
    }
}
