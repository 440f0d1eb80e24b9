package import Model

/// The last 1,000 changes and their subscribers. A subscriber to the local changes gets only those of local endpoints.
///
/// A subscriber gets every change exactly once and in order. The stream of a subscriber that is too slow ends. The
/// subscriber can resume from its last revision, or start with a new list if the changes since are gone.
struct ChangeLog: Sendable {
    /// The number of changes kept for resuming subscribers, and the number buffered for a slow one.
    static let capacity = 1_000

    private(set) var revision: UInt64
    /// The revision of the last change. `revision` is above it after `skipRevision`.
    private(set) var lastChangeRevision: UInt64
    private var ring: [EndpointChange] = []
    private let subscribers = Broadcast<EndpointChange>(slow: .ends(after: Self.capacity))
    private let localSubscribers = Broadcast<EndpointChange>(slow: .ends(after: Self.capacity))

    /// - Parameter revision: The revision to continue from, so that a client of an earlier run never misses a change.
    init(startingAfter revision: UInt64) {
        self.revision = revision
        lastChangeRevision = revision
    }

    /// Stores a change under the next revision and sends it to all subscribers.
    mutating func append(_ kind: EndpointChange.Kind, _ endpoint: Endpoint) {
        revision += 1
        lastChangeRevision = revision
        let change = EndpointChange(revision: revision, kind: kind, endpoint: endpoint)
        if ring.count == Self.capacity { ring.removeFirst(Self.capacity / 10) }
        ring.append(change)
        subscribers.send(change)
        if !endpoint.isOnOtherHost { localSubscribers.send(change) }
    }

    /// Begins a new revision without a change of an endpoint.
    mutating func skipRevision() { revision += 1 }

    /// Returns the changes after `revision`; nil if they are not stored here.
    func changes(after revision: UInt64) -> [EndpointChange]? {
        if revision == self.revision { return [] }
        guard revision < self.revision, let first = ring.first, first.revision <= revision + 1 else { return nil }
        return Array(ring.drop { $0.revision <= revision })
    }

    /// Subscribes to all changes from now on.
    func subscribe() -> AsyncStream<EndpointChange> { subscribers.subscribe() }

    /// Subscribes to the changes of local endpoints from now on.
    func subscribeToLocal() -> AsyncStream<EndpointChange> { localSubscribers.subscribe() }

    /// The number of subscribers of both kinds.
    var subscriberCount: Int { subscribers.subscriberCount + localSubscribers.subscriberCount }

    func finish() {
        subscribers.finish()
        localSubscribers.finish()
    }
}

extension EndpointTable {
    /// The effect of one event on the list.
    package enum Change: Hashable, Sendable {
        case added(Endpoint)
        case changed(Endpoint)
        case removed(Endpoint)

        var endpoint: Endpoint {
            switch self {
            case .added(let endpoint), .changed(let endpoint), .removed(let endpoint): endpoint
            }
        }

        var kind: EndpointChange.Kind {
            switch self {
            case .added: .added
            case .changed: .changed
            case .removed: .removed
            }
        }
    }
}
