import Model

/// The last thousand changes, and whoever follows them.
///
/// A follower gets every change exactly once and in order. One that does not keep up is let go, its stream ends: it comes
/// back with the last revision it saw and gets the rest, or a fresh list where the rest is no longer kept.
struct ChangeLog: Sendable {
    /// How many changes are kept for followers that come back, and how many wait for one that is slow.
    static let capacity = 1_000

    private(set) var revision: UInt64
    private var ring: [EndpointChange] = []
    private let followers = Broadcast<EndpointChange>(slow: .ends(after: Self.capacity))

    /// - Parameter revision: Where numbering goes on, so that a client of an earlier run is never told "nothing new".
    init(startingAfter revision: UInt64) { self.revision = revision }

    mutating func append(_ kind: EndpointChange.Kind, _ endpoint: Endpoint) {
        revision += 1
        let change = EndpointChange(revision: revision, kind: kind, endpoint: endpoint)
        if ring.count == Self.capacity { ring.removeFirst(Self.capacity / 10) }
        ring.append(change)
        followers.send(change)
    }

    /// The changes after `revision`; nil when they are no longer, or were never, kept here.
    func changes(after revision: UInt64) -> [EndpointChange]? {
        if revision == self.revision { return [] }
        guard revision < self.revision, let first = ring.first, first.revision <= revision + 1 else { return nil }
        return Array(ring[Int(revision + 1 - first.revision)...])
    }

    /// Every change from now on.
    func follow() -> AsyncStream<EndpointChange> { followers.subscribe() }

    var followerCount: Int { followers.subscriberCount }

    func finish() { followers.finish() }
}
