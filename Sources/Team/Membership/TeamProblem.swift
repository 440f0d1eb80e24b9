import FoundationEssentials
package import Model

/// The problems of a running team, with their next steps.
extension TeamSetup.Running {
    /// Checks whether this host can use the team registry, and other hosts can reach it.
    ///
    /// - Parameters:
    ///   - members: The saved members.
    ///   - now: The time of the wall clock.
    /// - Returns: The problem; nil if there is none.
    func problem(members: TeamMembers, at now: Date = Date()) -> Problem? {
        let isAuthority = membership.isAuthority
        if !members.all.isEmpty, !members.accepts(membership.host, key: key) {
            return LocalTeam.removal(of: membership)
        }
        if expiresAt() <= now {
            let end = expiresAt().formatted(.iso8601)
            return Problem(
                .conflict,
                "the certificate of this host ended at \(end), so neither etcd nor the other hosts accept it",
                hint: isAuthority
                    ? membership.initCommand
                    : "check the clock; patchbay team join - with a new string of patchbay team invite"
            )
        }
        if startsAt() > now {
            return Problem(
                .conflict,
                "the certificate of this host is not valid before \(startsAt().formatted(.iso8601)), because the clock here is "
                    + "\(CertificateDates.delay(of: now, to: startsAt())) s behind that of the authority at its issue",
                hint: "timedatectl, here and on \(membership.authority)"
            )
        }
        let snapshot = snapshot()
        let isEmpty = snapshot.staleSince == nil && snapshot.members.isEmpty
        let empty = TeamError.wrongTeam(expected: membership.team, found: nil)
        switch snapshot.failure ?? (isEmpty ? empty : nil) {
        case nil: return listenerError.problem
        case .wrongTeam(_, nil):
            let command = membership.initCommand
            let hint = isAuthority ? command : "on \(membership.authority): \(command)"
            return Problem(.conflict, "the registry has no team", hint: hint)
        case .store(.denied(let reason)) where !isAuthority:
            return Problem(
                .forbidden,
                "the registry of the team refused this host: \(reason)",
                hint: "patchbay team leave, if \(membership.authority) has removed this host"
            )
        case let failure?: return Problem(.unavailable, "\(failure)", hint: Problem.hint(after: failure))
        }
    }
}

extension TeamSetup {
    /// The problem of the team for `patchbay status` and `patchbay doctor`; nil if there is none.
    package func source() async -> SourceStatus? {
        guard let problem = await Problem.found(by: { try await self.problem() }) else {
            return .registry(registryServers)
        }
        let hint = problem.hint ?? "patchbay team"
        return SourceStatus(name: "team", state: .missing, detail: problem.detail, hint: hint)
    }
}

extension TeamMembership {
    /// The command that repairs the team registry, on the authority.
    var initCommand: String { Self.initCommand(team) }

    static func initCommand(_ team: SanitizedText) -> String { "patchbay team init \(team.text.shellQuoted)" }
}
