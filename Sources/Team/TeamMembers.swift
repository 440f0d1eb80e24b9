package import Logging
package import Model
import Synchronization
import SystemIO

/// The members of the team that this host accepts: the last known list of the registry.
///
/// The list is also in the file `members.json`, so a removed host stays removed when the registry is unreachable.
package final class TeamMembers: Sendable {
    private let members: Mutex<[HostName: TeamMember]>
    private let removed = Broadcast<TeamMember>(slow: .ends(after: 10_000))
    private let file: StateFile<[TeamMember]>
    private let logger: Logger

    /// Reads the saved list.
    ///
    /// - Parameters:
    ///   - folder: The folder of the team.
    ///   - logger: The logger.
    /// - Throws: `TeamError.state` if the file exists and cannot be read.
    package init(in folder: String, logger: Logger) async throws(TeamError) {
        self.logger = logger
        file = StateFile("members", in: folder, logger: logger)
        do {
            members = Mutex(Self.byName(try await file.read() ?? []))
        } catch { throw .state(error) }
    }

    /// The members, sorted by name.
    package var all: [TeamMember] { members.withLock { $0.values.sorted { $0.name < $1.name } } }

    /// Returns a member; nil if the team has no such host.
    package subscript(_ name: HostName) -> TeamMember? { members.withLock { $0[name] } }

    /// Returns whether a host with a certificate belongs to the team.
    package func accepts(_ name: HostName, key: KeyPin) -> Bool { self[name]?.key == key }

    /// Returns a stream of members that are removed from now on, or whose key is replaced. Their connections must end.
    package func removals() -> AsyncStream<TeamMember> { removed.subscribe() }

    /// Replaces the list. Returns after the file is on disk. A failed write is logged, and the new list counts.
    package func replace(with list: [TeamMember]) async {
        let new = Self.byName(list)
        let old = members.withLock { members in
            defer { members = new }
            return members
        }
        guard new != old else { return }
        for member in old.values where new[member.name]?.key != member.key { removed.send(member) }
        do {
            try await file.write(list.sorted { $0.name < $1.name })
        } catch {
            logger.error("cannot save the members of the team", metadata: ["reason": "\(error)"])
        }
    }

    private static func byName(_ list: [TeamMember]) -> [HostName: TeamMember] {
        Dictionary(list.map { ($0.name, $0) }) { _, last in last }
    }
}
