import Discovery
import FoundationEssentials
import Model
import Samples
import Synchronization
import TestSupport
import Testing
import Transport

@testable import Team

/// A registry in memory, with the users that etcd would have.
final class InMemoryRegistry: TeamRegistryConnector, TeamRegistryAdministration {
    let memory = InMemoryTeamStore()
    /// Writes of a host until its user is deleted.
    let lateWrites = Mutex<[TeamStoreWrite]>([])
    /// What happens during the next removal, before the user is deleted.
    let duringRemoval = Mutex<(@Sendable () async -> Void)?>(nil)
    /// True if the servers answer the administrator only.
    let refusesHosts = Mutex(false)
    /// True if the next write of a member has no answer.
    let losesMember = Mutex(false)
    private let users = Mutex<[HostName]>([])
    private let otherUsers = Mutex<Set<String>>([])
    private let connections = Mutex<[TeamRegistryConnection]>([])

    var hosts: [HostName] { users.withLock { $0.sorted() } }
    /// The connections of the administrator so far.
    var administrators: [TeamRegistryConnection] { connections.withLock { $0 } }

    var store: any TeamStore { LossyStore(inner: memory, losesMember: takeLoss) }

    private func takeLoss() -> Bool {
        losesMember.withLock { loses in
            defer { loses = false }
            return loses
        }
    }

    func administration(_ connection: TeamRegistryConnection) throws(TeamStoreError) -> any TeamRegistryAdministration {
        connections.withLock { $0.append(connection) }
        return self
    }

    func store(_ connection: TeamRegistryConnection) throws(TeamStoreError) -> any TeamStore { memory }

    func health(_ connection: TeamRegistryConnection) async -> [TeamServerHealth] {
        let isAnswering = memory.isReachable && !refusesHosts.withLock { $0 }
        return connection.servers.map { TeamServerHealth(url: $0, problem: isAnswering ? nil : "no answer") }
    }

    func prepare() async throws(TeamStoreError) { try check() }

    /// Adds a user whom Patchbay did not create.
    func addUser(_ name: String) { otherUsers.withLock { _ = $0.insert(name) } }

    func addHost(_ host: HostName) async throws(TeamStoreError) {
        try check()
        guard !otherUsers.withLock({ $0.contains(host.text) }) else { throw .userExists(name: host.text) }
        users.withLock { users in
            if !users.contains(host) { users.append(host) }
        }
    }

    func removeHost(_ host: HostName) async throws(TeamStoreError) -> Bool {
        try check()
        _ = try await memory.write(lateWrites.withLock { $0 }, if: nil)
        await takeHook()?()
        return users.withLock { users in
            let count = users.count
            users.removeAll { $0 == host }
            return users.count < count
        }
    }

    private func takeHook() -> (@Sendable () async -> Void)? {
        duringRemoval.withLock { hook in
            defer { hook = nil }
            return hook
        }
    }

    private func check() throws(TeamStoreError) {
        guard memory.isReachable else { throw .unreachable(reason: "no answer") }
    }

    /// The members in the registry.
    func members() async throws -> [String] { try await TeamAuthority(store: memory).members().map(\.name.text) }
}

/// The registry as the administrator uses it.
private struct LossyStore: TeamStore {
    let inner: InMemoryTeamStore
    let losesMember: @Sendable () -> Bool

    func list(_ prefix: String) async throws(TeamStoreError) -> TeamStoreList { try await inner.list(prefix) }

    func changes(of prefix: String, after revision: Int64) -> AsyncThrowingStream<TeamStoreChanges, any Error> {
        inner.changes(of: prefix, after: revision)
    }

    func write(_ writes: [TeamStoreWrite], if condition: TeamStoreCondition?) async throws(TeamStoreError) -> Bool {
        let isMade = try await inner.write(writes, if: condition)
        if case .put(let key, _, _)? = writes.first, key.hasPrefix(TeamKey.members), losesMember() {
            throw .unreachable(reason: "no answer")
        }
        return isMade
    }

    func grantSessionLease(timeToLive: Duration) async throws(TeamStoreError) -> SessionLease.ID {
        try await inner.grantSessionLease(timeToLive: timeToLive)
    }

    func renewSessionLease(_ id: SessionLease.ID) async throws(TeamStoreError) { try await inner.renewSessionLease(id) }

    func revokeSessionLease(_ id: SessionLease.ID) async throws(TeamStoreError) {
        try await inner.revokeSessionLease(id)
    }
}

/// The authority in the same process: the network between two hosts, without TLS.
private struct DirectAuthority: TeamAuthorityClient {
    let setup: @Sendable () -> TeamSetup
    /// What happens before the response of the authority arrives.
    let beforeResponse: @Sendable () async -> Void
    /// True if the response of the authority is lost.
    let losesResponse: @Sendable () -> Bool

    func admit(_ spec: TeamMemberSpec, at pairing: TeamPairingString) async throws -> TeamAdmission {
        let admission = try await setup().admit(spec).admission
        await beforeResponse()
        if losesResponse() { throw Problem(.unavailable, "the response was lost") }
        return admission
    }
}

/// Hosts with one registry. The first one, lab1, is the authority.
final class TeamFixture: Sendable {
    let registry = InMemoryRegistry()
    /// What happens once after an admission, before its response arrives.
    let duringResponse = Mutex<(@Sendable () async -> Void)?>(nil)
    private let scratch: String
    private let authority = Mutex<TeamSetup?>(nil)
    private let loses = Mutex(false)

    init(in scratch: ScratchFolder) { self.scratch = scratch.file(".") }

    var losesResponse: Bool {
        get { loses.withLock { $0 } }
        set { loses.withLock { $0 = newValue } }
    }

    func folder(_ name: String) throws -> TeamFolder {
        let state = "\(scratch)/\(name)"
        try FileManager.default.createDirectory(atPath: state, withIntermediateDirectories: true)
        return TeamFolder(in: state)
    }

    /// The team of a host, as its broker reads it.
    func team(_ name: String, _ configuration: TeamConfiguration? = nil) throws -> LocalTeam {
        var settings = TeamConfiguration()
        settings.addresses = [try #require(TeamAddress("10.0.0.7"))]
        return LocalTeam(
            try folder(name),
            settings: TeamHostSettings(
                configuration: configuration ?? settings,
                machine: "\(name).example.com",
                interfaces: InterfaceFilter(allowed: ["*"], denied: [])
            ),
            connector: registry,
            logger: .quiet
        )
    }

    private func takeHook() -> (@Sendable () async -> Void)? {
        duringResponse.withLock { hook in
            defer { hook = nil }
            return hook
        }
    }

    /// Starts the broker of a host, which reads the membership of its folder.
    func start(_ name: String, _ configuration: TeamConfiguration? = nil) async throws -> TeamSetup {
        let team = try team(name, configuration)
        let participation = FixtureParticipation(in: team)
        await participation.useSavedTeam()
        let setup = TeamSetup(
            team,
            authority: DirectAuthority(
                setup: { [self] in authority.withLock { $0 } ?? unreachable() },
                beforeResponse: { [self] in await takeHook()?() },
                losesResponse: { [self] in losesResponse }
            ),
            participation
        )
        if name == "lab1" { authority.withLock { $0 = setup } }
        return setup
    }

    private func unreachable() -> TeamSetup { preconditionFailure("the test has not started lab1") }

    static let spec = TeamSpec(team: SanitizedText("lab"), etcd: ["https://10.0.0.5:2379"])

    /// Starts lab1 with a new team, and restarts it.
    func createTeam() async throws -> TeamSetup {
        _ = try await start("lab1").create(Self.spec)
        return try await start("lab1")
    }

    /// The saved members of a host, after its broker has read the registry.
    func members(_ name: String) async throws -> TeamMembers {
        let members = try await team(name).members()
        await members.replace(with: try await TeamAuthority(store: registry.memory).members())
        return members
    }

    /// Returns whether each of two hosts accepts the other one.
    func agree(_ one: String, _ other: String) async throws -> Bool {
        for (host, peer) in [(one, other), (other, one)] {
            guard let identity = try folder(peer).identity.load(),
                try await members(host).accepts(identity.host, key: identity.pin)
            else { return false }
        }
        return true
    }

    /// Lets a host join the team of lab1.
    func join(_ name: String) async throws -> TeamSetup {
        let pairing = try await start("lab1").invite(TeamInviteSpec()).pairing
        let setup = try await start(name)
        _ = try await setup.join(TeamJoinSpec(pairing: pairing))
        return setup
    }
}

extension TeamSetup {
    func remove(_ host: HostName) async throws { try await remove(host) {} }
}

/// A broker that takes part in the saved team, without its services.
private final class FixtureParticipation: TeamParticipation {
    private let team: LocalTeam
    private let running = Mutex<TeamSetup.Running?>(nil)

    init(in team: LocalTeam) { self.team = team }

    var state: TeamSetup.Running? { running.withLock { $0 } }

    func useSavedTeam() async {
        guard let membership = try? await team.membership(), let identity = try? team.folder.identity.load() else {
            return await end()
        }
        var snapshot = TeamSnapshot(staleSince: nil)
        for member in (try? await team.members().all) ?? [] { snapshot.apply(.member(member)) }
        let state = TeamSetup.Running(
            membership: membership,
            key: identity.pin,
            certificate: { identity.certificatePEM },
            snapshot: { [snapshot] in snapshot },
            own: { TeamHost(name: membership.host, version: "1", addresses: [], since: Date(), generation: 1) }
        )
        running.withLock { $0 = state }
    }

    func end() async { running.withLock { $0 = nil } }
}
