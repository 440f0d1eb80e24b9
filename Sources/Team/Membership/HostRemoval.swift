import Logging
import Model
import SystemIO

/// The removal of a host from the team. Works on the host that has the certificate authority.
struct HostRemoval: Sendable {
    private let team: LocalTeam
    /// The members whose removal has begun and not ended: the file `removals.json` in the team's folder.
    private let unfinished: StateFile<[HostName]>

    /// - Parameter team: The team of this host.
    init(from team: LocalTeam) {
        self.team = team
        unfinished = StateFile("removals", in: team.folder.path, logger: team.logger)
    }

    /// Removes the entries and the user of a host from the team registry. A later call completes one that failed.
    ///
    /// - Parameters:
    ///   - host: The host.
    ///   - onRemoval: Records the removal. Called by each call that removes a member, or the rest of one.
    /// - Throws: `Problem`, an error of `onRemoval`.
    func run(_ host: HostName, onRemoval: @Sendable () async throws -> Void) async throws {
        let (membership, authority) = try await team.requiredAuthority()
        guard host != membership.host else {
            throw Problem(
                .conflict,
                "\(host) is this host, which has the certificate authority of the team",
                hint: "patchbay team leave"
            )
        }
        let administration = try team.administration(membership, authority)
        let entries = TeamAuthority(store: administration.store)
        let isMember = try await entries.members().contains { $0.name == host }
        let begun = (try? await unfinished.read()) ?? []
        // A full disk does not stop the removal. A later call may then not know this one.
        if isMember, !begun.contains(host) { try? await unfinished.write(begun + [host]) }
        // Also for a host without an entry: an earlier call may have ended in the middle.
        do { try await entries.remove(host) } catch { throw Self.notComplete(host, error) }
        let hadUser: Bool
        do {
            hadUser = try await removeRest(of: host, administration, entries)
        } catch {
            if isMember { try await onRemoval() }
            throw Self.notComplete(host, error)
        }
        guard isMember || hadUser || begun.contains(host) else {
            throw Problem(.notFound, "the team has no host \(host)", hint: "patchbay team")
        }
        try await onRemoval()
        try? await unfinished.write(begun.filter { $0 != host })
        team.logger.notice("removed a host from the team", metadata: ["host": "\(host)"])
    }

    /// Removes everything but the membership, which ended before.
    ///
    /// - Returns: True if the host had a user.
    private func removeRest(
        of host: HostName,
        _ administration: any TeamRegistryAdministration,
        _ entries: TeamAuthority
    ) async throws -> Bool {
        let hadUser = try await administration.removeHost(host)
        // The host may have written entries until then.
        try await entries.remove(host)
        // Read again: a host may have joined since. A member that the new list lacks counts as removed.
        let saved = try await team.members()
        await saved.replace(with: saved.all.filter { $0.name != host })
        try await entries.removeClaims(of: host)
        return hadUser
    }

    private static func notComplete(_ host: HostName, _ error: any Error) -> Problem {
        Problem(
            .unavailable,
            "the removal of \(host) is not complete: \(error)",
            hint: "run it again: patchbay team remove \(host)"
        )
    }
}
