import Model

/// Lists the registry of a team in parts. A host can write so much that its part cannot be listed, which hides no other.
struct TeamListing {
    /// The prefixes of the parts that the last list lacks.
    private(set) var missing: Set<String> = []
    private let store: any TeamStore

    init(_ store: any TeamStore) { self.store = store }

    /// Lists all entries except for those of `missing`.
    ///
    /// The members come first, and the returned revision is theirs. Changes before it could have the removal of a host
    /// that has joined again since. That removal would refuse the new key for ever.
    ///
    /// Another part may be of a later revision. The changes after the returned revision lead to the same state.
    mutating func list() async throws(TeamStoreError) -> TeamStoreList {
        missing = []
        let listed = try await store.list(TeamKey.members)
        let members = listed.entries.compactMap { entry in
            if case .member(let name)? = TeamKey(entry.key) { name } else { nil }
        }
        var entries = listed.entries
        entries += try await store.list(TeamKey.meta.text).entries
        for (prefix, parts) in [
            (TeamKey.hosts, members.map { TeamKey.host($0).text }),
            (TeamKey.endpoints, members.map { TeamKey.endpoints(of: $0) }),
            (TeamKey.devices, members.map { TeamKey.devices(of: $0) }),
            (TeamKey.claims, []),
        ] {
            guard try await !list(prefix, into: &entries) else { continue }
            if parts.isEmpty { missing.insert(prefix) }
            for part in parts where try await !list(part, into: &entries) { missing.insert(part) }
        }
        return TeamStoreList(entries: entries, revision: listed.revision)
    }

    /// - Returns: False if the part cannot be listed.
    /// - Throws: `TeamStoreError` if nothing else can be listed either.
    private func list(_ prefix: String, into entries: inout [TeamStoreEntry]) async throws(TeamStoreError) -> Bool {
        do {
            entries += try await store.list(prefix).entries
            return true
        } catch {
            // A part that is much too large leads to no answer in time.
            _ = try await store.list(TeamKey.meta.text)
            return false
        }
    }
}
