import Model

/// Lists the registry of a team in parts. A host can write so much that its part cannot be listed, which hides no
/// other.
struct TeamListing {
    /// The prefixes of the parts that the last list lacks.
    private(set) var missing: Set<String> = []
    /// The revision of the claims in the last list; 0 if it lacks them.
    private(set) var claimsRevision: Int64 = 0
    private let store: any TeamStore

    init(_ store: any TeamStore) { self.store = store }

    /// Lists all entries except for those of `missing`.
    ///
    /// The members come first, and the returned revision is theirs. Changes before it could have the removal of a host
    /// that has joined again since. That removal would refuse the new key for ever.
    ///
    /// Another part may be of a later revision. The changes after the returned revision lead to the same state, by way of
    /// older ones. An older claim would end a lease of this host, so changes of claims up to `claimsRevision` must be
    /// ignored.
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
        ] {
            if let whole = try await store.listPart(prefix, attempts: 1) {
                entries += whole.entries
                continue
            }
            for part in parts { try await list(part, into: &entries) }
        }
        claimsRevision = try await list(TeamKey.claims, into: &entries) ?? 0
        return TeamStoreList(entries: entries, revision: listed.revision)
    }

    /// Returns the revision of the part; nil if it is missing.
    @discardableResult private mutating func list(
        _ part: String,
        into entries: inout [TeamStoreEntry]
    ) async throws(TeamStoreError) -> Int64? {
        guard let listed = try await store.listPart(part) else {
            missing.insert(part)
            return nil
        }
        entries += listed.entries
        return listed.revision
    }
}

extension TeamStore {
    /// Lists a part of the team registry.
    ///
    /// A part that is much too large leads to no answer in time, as a slow server does. It therefore counts as too
    /// large if the store answers another request after each attempt.
    ///
    /// - Returns: The list; nil if its entries are more than one answer can have.
    /// - Throws: `TeamStoreError` if nothing else can be listed either.
    func listPart(_ prefix: String, attempts: Int = 3) async throws(TeamStoreError) -> TeamStoreList? {
        for _ in 0..<attempts {
            do { return try await list(prefix) } catch {
                _ = try await list(TeamKey.meta.text)
                if case .tooLarge = error { return nil }
            }
        }
        return nil
    }
}
