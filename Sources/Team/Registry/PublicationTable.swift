/// The difference between the entries that a host wants in the team registry and those that it has.
///
/// One write runs at a time: each result of `nextWrites()` is followed by `acknowledge(_:)` or `fail(_:)`.
struct PublicationTable: Sendable {
    private enum Stored: Sendable, Hashable {
        case value([UInt8])
        /// The key may have any value, or none.
        case unknown
    }

    private var wanted: [String: [UInt8]] = [:]
    private var stored: [String: Stored] = [:]
    /// The keys to compare, in the order of their changes.
    private var queue: [String] = []
    private var queued: Set<String> = []
    /// The session lease of the entries in `stored`; nil before the first publication.
    private(set) var sessionLease: SessionLease?

    var keys: some Collection<String> { wanted.keys }

    /// Sets the value of a key; nil removes the key.
    mutating func set(_ key: String, to value: [UInt8]?) {
        guard wanted[key] != value else { return }
        wanted[key] = value
        enqueue(key)
    }

    /// Begins a publication with a new session lease: every wanted key is written, and every other existing key is
    /// deleted.
    mutating func begin(with sessionLease: SessionLease, existing keys: [String]) {
        self.sessionLease = sessionLease
        stored = Dictionary(keys.map { ($0, .unknown) }, uniquingKeysWith: { first, _ in first })
        for key in wanted.keys.sorted() + keys { enqueue(key) }
    }

    /// Returns the next writes, at most `TeamStoreWrite.limit`; nil if the team registry has everything.
    mutating func nextWrites() -> [TeamStoreWrite]? {
        guard let sessionLease else { return nil }
        var writes: [TeamStoreWrite] = []
        var count = 0
        for key in queue {
            guard writes.count < TeamStoreWrite.limit else { break }
            count += 1
            queued.remove(key)
            if let value = wanted[key] {
                guard stored[key] != .value(value) else { continue }
                writes.append(.put(key: key, value: value, sessionLease: sessionLease.id))
            } else if stored[key] != nil {
                writes.append(.delete(key: key))
            }
        }
        queue.removeFirst(count)
        return writes.isEmpty ? nil : writes
    }

    mutating func acknowledge(_ writes: [TeamStoreWrite]) {
        for write in writes {
            switch write {
            case .put(let key, let value, _): stored[key] = .value(value)
            case .delete(let key): stored[key] = nil
            case .deleteAll: break
            }
        }
    }

    /// Queues writes again, which may have been made or not.
    mutating func fail(_ writes: [TeamStoreWrite]) {
        for write in writes {
            switch write {
            case .put(let key, _, _), .delete(let key):
                stored[key] = .unknown
                enqueue(key)
            case .deleteAll: break
            }
        }
    }

    private mutating func enqueue(_ key: String) {
        if queued.insert(key).inserted { queue.append(key) }
    }
}
