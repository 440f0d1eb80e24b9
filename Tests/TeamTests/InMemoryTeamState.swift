@testable import Team

/// The entries, leases, history and watchers of an `InMemoryTeamStore`.
struct InMemoryTeamState {
    typealias Watcher = AsyncThrowingStream<TeamStoreChanges, any Error>.Continuation

    private struct Value {
        let bytes: [UInt8]
        let lease: SessionLease.ID?
    }

    private struct Lease {
        let timeToLive: Duration
        var end: Duration
        var keys: Set<String> = []
    }

    var isReachable = true
    private(set) var revision: Int64 = 1
    private var entries: [String: Value] = [:]
    private var leases: [SessionLease.ID: Lease] = [:]
    private var history: [TeamStoreChanges] = []
    /// The revision before the first one of the history.
    private var compactedRevision: Int64 = 1
    private var watchers: [UInt64: (prefix: String, watcher: Watcher)] = [:]
    private var lastWatcher: UInt64 = 0
    private var lastLease: SessionLease.ID = 0

    func list(_ prefix: String) -> TeamStoreList {
        let found = entries.filter { $0.key.hasPrefix(prefix) }.sorted { $0.key < $1.key }
        return TeamStoreList(
            entries: found.map { TeamStoreEntry(key: $0.key, value: $0.value.bytes) },
            revision: revision
        )
    }

    mutating func write(
        _ writes: [TeamStoreWrite],
        if condition: TeamStoreCondition?
    ) throws(TeamStoreError) -> Bool {
        guard writes.count <= TeamStoreWrite.limit else {
            throw .failed(reason: "\(writes.count) writes in one step; at most \(TeamStoreWrite.limit) are possible")
        }
        for case .put(_, _, let lease?) in writes where leases[lease] == nil { throw .sessionLeaseEnded }
        switch condition {
        case .absent(let key): guard entries[key] == nil else { return false }
        case .equals(let key, let value): guard entries[key]?.bytes == value else { return false }
        case nil: break
        }
        commit(writes.flatMap { make($0) })
        return true
    }

    private mutating func make(_ write: TeamStoreWrite) -> [TeamStoreChanges.Change] {
        switch write {
        case .put(let key, let bytes, let lease):
            detach(key)
            entries[key] = Value(bytes: bytes, lease: lease)
            if let lease { leases[lease]?.keys.insert(key) }
            return [.put(TeamStoreEntry(key: key, value: bytes))]
        case .delete(let key):
            return delete([key])
        case .deleteAll(let prefix):
            return delete(entries.keys.filter { $0.hasPrefix(prefix) })
        }
    }

    private mutating func delete(_ keys: some Collection<String>) -> [TeamStoreChanges.Change] {
        let present = keys.filter { entries[$0] != nil }.sorted()
        for key in present {
            detach(key)
            entries[key] = nil
        }
        return present.map { .delete(key: $0) }
    }

    private mutating func detach(_ key: String) {
        if let lease = entries[key]?.lease { leases[lease]?.keys.remove(key) }
    }

    private mutating func commit(_ changes: [TeamStoreChanges.Change]) {
        guard !changes.isEmpty else { return }
        revision += 1
        let step = TeamStoreChanges(changes: changes, revision: revision)
        history.append(step)
        if history.count > InMemoryTeamStore.historyLimit { compact(keeping: InMemoryTeamStore.historyLimit / 2) }
        for (number, (prefix, watcher)) in watchers {
            guard let step = step.restricted(to: prefix), case .terminated = watcher.yield(step) else { continue }
            watchers[number] = nil
        }
    }
}

/// Leases.
extension InMemoryTeamState {
    mutating func grantSessionLease(_ timeToLive: Duration, at now: Duration) -> SessionLease.ID {
        lastLease += 1
        leases[lastLease] = Lease(timeToLive: timeToLive, end: now + timeToLive)
        return lastLease
    }

    mutating func renewSessionLease(_ id: SessionLease.ID, at now: Duration) throws(TeamStoreError) {
        guard let lease = leases[id] else { throw .sessionLeaseEnded }
        leases[id]?.end = now + lease.timeToLive
    }

    mutating func endLease(_ id: SessionLease.ID) {
        guard let lease = leases.removeValue(forKey: id) else { return }
        commit(delete(lease.keys))
    }

    mutating func expireLeases(at now: Duration) {
        for (id, lease) in leases.sorted(by: { $0.key < $1.key }) where lease.end <= now { endLease(id) }
    }
}

/// Watchers.
extension InMemoryTeamState {
    /// - Throws: `TeamStoreError.compacted` if the history lacks a revision.
    mutating func watch(
        _ prefix: String,
        after revision: Int64,
        _ watcher: Watcher
    ) throws(TeamStoreError) {
        guard revision >= compactedRevision else { throw .compacted }
        for step in history where step.revision > revision {
            if let step = step.restricted(to: prefix) { watcher.yield(step) }
        }
        lastWatcher += 1
        watchers[lastWatcher] = (prefix, watcher)
    }

    mutating func takeWatchers() -> [Watcher] {
        defer { watchers = [:] }
        return watchers.values.map(\.watcher)
    }

    /// Deletes the oldest revisions of the history.
    mutating func compact(keeping count: Int) {
        history.removeFirst(max(0, history.count - count))
        compactedRevision = history.first.map { $0.revision - 1 } ?? revision
    }
}

extension TeamStoreChanges {
    /// Returns the changes of keys that begin with `prefix`; nil if there are none.
    fileprivate func restricted(to prefix: String) -> TeamStoreChanges? {
        let matching = changes.filter { change in
            switch change {
            case .put(let entry): entry.key.hasPrefix(prefix)
            case .delete(let key): key.hasPrefix(prefix)
            }
        }
        return matching.isEmpty ? nil : TeamStoreChanges(changes: matching, revision: revision)
    }
}
