package import Model

/// The writes of the authority: the team itself, and its members. The store needs the permissions of the authority.
package struct TeamAuthority: Sendable {
    private let store: any TeamStore

    package init(store: any TeamStore) { self.store = store }

    /// Creates the registry of a team. Does nothing if the registry is already of this team.
    ///
    /// - Throws: `TeamError.wrongTeam`, `.newerSchema`, `.store`.
    package func create(_ team: SanitizedText) async throws(TeamError) {
        let meta = try TeamCoding.bytes(of: TeamMeta(team: team), for: .meta)
        let key = TeamKey.meta.text
        if try await write([.put(key: key, value: meta, lease: nil)], if: .absent(key: key)) { return }
        let known = try await value(of: .meta).flatMap { TeamCoding.value(TeamMeta.self, from: $0) }
        try TeamMeta.check(known, isOf: team)
    }

    /// Adds a member. Does nothing if the member is there with the same key.
    ///
    /// - Throws: `TeamError.nameTaken`, `.store`.
    package func add(_ member: TeamMember) async throws(TeamError) {
        let key = TeamKey.member(member.name)
        let bytes = try TeamCoding.bytes(of: member, for: key)
        if try await write([.put(key: key.text, value: bytes, lease: nil)], if: .absent(key: key.text)) { return }
        let known = try await value(of: key).flatMap { TeamCoding.value(TeamMember.self, from: $0) }
        guard known?.key == member.key else { throw .nameTaken(member.name) }
    }

    /// Removes a member and the entries of its host.
    ///
    /// - Throws: `TeamError.store`.
    package func remove(_ host: HostName) async throws(TeamError) {
        let writes: [TeamStoreWrite] = [
            .delete(key: TeamKey.member(host).text),
            .delete(key: TeamKey.host(host).text),
            .deleteAll(prefix: TeamKey.endpoints(of: host)),
            .deleteAll(prefix: TeamKey.devices(of: host)),
        ]
        _ = try await write(writes, if: nil)
    }

    /// The members, sorted by name.
    ///
    /// - Throws: `TeamError.store`.
    package func members() async throws(TeamError) -> [TeamMember] {
        do {
            let list = try await store.list(TeamKey.members)
            return list.entries.compactMap { TeamCoding.value(TeamMember.self, from: $0.value) }
        } catch { throw .store(error) }
    }

    private func write(_ writes: [TeamStoreWrite], if condition: TeamStoreCondition?) async throws(TeamError) -> Bool {
        do {
            return try await store.write(writes, if: condition)
        } catch { throw .store(error) }
    }

    private func value(of key: TeamKey) async throws(TeamError) -> [UInt8]? {
        do {
            return try await store.list(key.text).entries.first { $0.key == key.text }?.value
        } catch { throw .store(error) }
    }
}
