package import Model

/// The last 1,000 changes and their subscribers.
///
/// A subscriber gets every change exactly once and in order. The stream of a subscriber that is too slow ends. The
/// subscriber can resume from its last revision, or start with a new list if the changes since are gone.
package struct ChangeLog: Sendable {
    /// The number of changes kept for resuming subscribers, and the number buffered for a slow one.
    static let capacity = 1_000

    package private(set) var revision: UInt64
    /// The revision of the last change. `revision` is above it after `skipRevision`.
    package private(set) var lastChangeRevision: UInt64
    private var ring: [EndpointChange] = []
    private let subscribers = Broadcast<EndpointChange>(slow: .ends(after: Self.capacity))

    /// - Parameter revision: The revision to continue from, so that a client of an earlier run never misses a change.
    package init(startingAfter revision: UInt64) {
        self.revision = revision
        lastChangeRevision = revision
    }

    /// Stores a change and sends it to all subscribers.
    ///
    /// - Parameters:
    ///   - kind: The kind of the change.
    ///   - endpoint: The endpoint after the change.
    ///   - revision: The revision of the change, above all earlier ones; nil for the next number.
    /// - Returns: The revision of the change.
    @discardableResult
    package mutating func append(
        _ kind: EndpointChange.Kind,
        _ endpoint: Endpoint,
        as revision: UInt64? = nil
    ) -> UInt64 {
        let revision = revision ?? self.revision + 1
        (self.revision, lastChangeRevision) = (revision, revision)
        let change = EndpointChange(revision: revision, kind: kind, endpoint: endpoint)
        if ring.count == Self.capacity { ring.removeFirst(Self.capacity / 10) }
        ring.append(change)
        subscribers.send(change)
        return revision
    }

    /// Begins a new revision without a change of an endpoint.
    package mutating func skipRevision() { revision += 1 }

    /// Returns the changes after `revision`; nil if they are not stored here.
    package func changes(after revision: UInt64) -> [EndpointChange]? {
        if revision == self.revision { return [] }
        guard revision < self.revision, let first = ring.first, first.revision <= revision + 1 else { return nil }
        return Array(ring.drop { $0.revision <= revision })
    }

    /// Subscribes to all changes from now on.
    package func subscribe() -> AsyncStream<EndpointChange> { subscribers.subscribe() }

    var subscriberCount: Int { subscribers.subscriberCount }

    package func finish() { subscribers.finish() }
}

extension EndpointTable {
    /// The effect of one event on the list.
    package enum Change: Hashable, Sendable {
        case added(Endpoint)
        case changed(Endpoint)
        case removed(Endpoint)

        package var endpoint: Endpoint {
            switch self {
            case .added(let endpoint), .changed(let endpoint), .removed(let endpoint): endpoint
            }
        }

        package var kind: EndpointChange.Kind {
            switch self {
            case .added: .added
            case .changed: .changed
            case .removed: .removed
            }
        }
    }
}
