package import Model

/// The writes of the authority: the team itself, and its members. The store needs the permissions of the authority.
package struct TeamAuthority: Sendable {
    private let store: any TeamStore

    package init(store: any TeamStore) { self.store = store }

    /// Creates the registry of a team. Does nothing if the team registry is already of this team.
    ///
    /// - Throws: `TeamError.wrongTeam`, `.newerSchema`, `.store`.
    package func create(_ team: SanitizedText) async throws(TeamError) {
        let meta = try TeamCoding.bytes(of: TeamMeta(team: team), for: .meta)
        let key = TeamKey.meta.text
        if try await write([.put(key: key, value: meta, sessionLease: nil)], if: .absent(key: key)) { return }
        let known = try await value(of: .meta).flatMap { TeamCoding.value(TeamMeta.self, from: $0) }
        try TeamMeta.check(known, isOf: team)
    }

    /// Adds a member, or replaces its entry with a removed key. Does nothing if the member is there with the same key.
    ///
    /// - Throws: `TeamError.nameTaken`, `.store`.
    package func add(_ member: TeamMember, replacing removed: Set<KeyPin> = []) async throws(TeamError) {
        let key = TeamKey.member(member.name)
        let bytes = try TeamCoding.bytes(of: member, for: key)
        if try await write([.put(key: key.text, value: bytes, sessionLease: nil)], if: .absent(key: key.text)) {
            return
        }
        let value = try await value(of: key) ?? []
        let known = TeamCoding.value(TeamMember.self, from: value)?.key
        if known == member.key { return }
        guard let known, removed.contains(known),
            try await write(
                [.put(key: key.text, value: bytes, sessionLease: nil)],
                if: .equals(key: key.text, value: value)
            )
        else { throw .nameTaken(member.name) }
    }

    /// Removes a member and the entries of its host.
    ///
    /// - Throws: `TeamError.store`.
    package func remove(_ host: HostName) async throws(TeamError) {
        let member = TeamStoreWrite.delete(key: TeamKey.member(host).text)
        _ = try await write([member] + TeamStoreWrite.deletion(of: host), if: nil)
    }

    /// Deletes the claims of a removed host, those of hosts that do not run, and unreadable ones. Deletes all claims if
    /// they are too large to list.
    ///
    /// The removed host may have written claims in the name of any host. A running host deletes those in its own name.
    ///
    /// - Throws: `TeamError.store`.
    package func removeClaims(of removed: HostName) async throws(TeamError) {
        do {
            guard let claims = try await store.listPart(TeamKey.claims)?.entries else {
                _ = try await store.write([.deleteAll(prefix: TeamKey.claims)], if: nil)
                return
            }
            // Listed after the claims, so that a host that starts meanwhile is there.
            let hosts = try await store.list(TeamKey.hosts).entries.map(\.key)
            for entry in claims {
                let host = TeamCoding.value(TeamClaim.self, from: entry.value)?.host
                if let host, host != removed, hosts.contains(TeamKey.host(host).text) { continue }
                // A value that is too large for a claim would also be too large for the condition.
                let isClaim = entry.value.count <= TeamCoding.readLimit
                _ = try await store.write(
                    [.delete(key: entry.key)],
                    if: isClaim ? .equals(key: entry.key, value: entry.value) : nil
                )
            }
        } catch { throw .store(error) }
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
