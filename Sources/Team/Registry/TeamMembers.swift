package import Logging
package import Model
import Synchronization
import SystemIO

/// The members of the team that this host accepts: the last known list of the team registry, without removed keys.
///
/// The list and the removed keys are also in the file `members.json`. A removed host thus stays removed when the team
/// registry is unreachable, and when its entry returns. A host that joins again has a new key.
package final class TeamMembers: Sendable {
    private struct State: Equatable {
        var members: [HostName: TeamMember]
        /// The keys of removed members and replaced keys, with the names of their hosts.
        var removed: [KeyPin: HostName]
    }

    /// The content of the file.
    private struct Saved: Codable {
        struct Key: Codable {
            let key: KeyPin
            let name: HostName
        }

        let members: [TeamMember]
        let removed: [Key]
    }

    private let state: Mutex<State>
    private let removed = Broadcast<TeamMember>(slow: .ends(after: 10_000))
    private let file: StateFile<Saved>
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
            let saved = try await file.read()
            let removed = (saved?.removed ?? []).map { ($0.key, $0.name) }
            state = Mutex(
                State(
                    members: Self.byName(saved?.members ?? []),
                    removed: Dictionary(removed) { _, last in last }
                )
            )
        } catch { throw .state(error) }
    }

    /// The members, sorted by name.
    package var all: [TeamMember] { state.withLock { $0.members.values.sorted { $0.name < $1.name } } }

    /// The keys that are never accepted again.
    package var removedKeys: Set<KeyPin> { state.withLock { Set($0.removed.keys) } }

    /// Returns a member; nil if the team has no such host.
    package subscript(_ name: HostName) -> TeamMember? { state.withLock { $0.members[name] } }

    /// Returns whether a host with a certificate belongs to the team.
    package func accepts(_ name: HostName, key: KeyPin) -> Bool { self[name]?.key == key }

    /// Returns a stream of members that are removed from now on, or whose key is replaced. Their connections must end.
    package func removals() -> AsyncStream<TeamMember> { removed.subscribe() }

    /// Replaces the list, except for members with a removed key. Returns after the file is on disk. A failed write is
    /// logged, and the new list counts.
    ///
    /// An empty list is that of a registry that lost its entries, because the authority is always a member. Its members
    /// are refused, and accepted again when their entries return.
    package func replace(with list: [TeamMember]) async {
        let (old, new) = state.withLock { state in
            let old = state
            state.members = Self.byName(list.filter { old.removed[$0.key] == nil })
            for member in list.isEmpty ? [] : Array(old.members.values)
            where state.members[member.name]?.key != member.key { state.removed[member.key] = member.name }
            return (old, state)
        }
        await save(new, after: old)
    }

    /// Replaces the list with that of a join, except for members with a removed key. Returns after the file is on disk.
    ///
    /// The authority's list may be older than the saved one. So a saved member that the list lacks is not removed: its
    /// key is accepted again when the team registry has it.
    ///
    /// - Parameters:
    ///   - list: The list of the authority.
    ///   - isSameTeam: False for the join of another team, which forgets the removed keys.
    package func join(_ list: [TeamMember], isSameTeam: Bool) async {
        let (old, new) = state.withLock { state in
            let old = state
            let removed = isSameTeam ? old.removed : [:]
            state = State(members: Self.byName(list.filter { removed[$0.key] == nil }), removed: removed)
            return (old, state)
        }
        await save(new, after: old)
    }

    private func save(_ new: State, after old: State) async {
        guard new != old else { return }
        for member in old.members.values where new.members[member.name]?.key != member.key { removed.send(member) }
        do {
            try await file.write(
                Saved(
                    members: new.members.values.sorted { $0.name < $1.name },
                    removed: new.removed.map { Saved.Key(key: $0.key, name: $0.value) }.sorted { $0.name < $1.name }
                )
            )
        } catch {
            logger.error("cannot save the members of the team", metadata: ["reason": "\(error)"])
        }
    }

    private static func byName(_ list: [TeamMember]) -> [HostName: TeamMember] {
        Dictionary(list.map { ($0.name, $0) }) { _, last in last }
    }
}
