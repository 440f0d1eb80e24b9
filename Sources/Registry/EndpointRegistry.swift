package import FoundationEssentials
package import Model

/// The one list of everything reachable, and the feed of its changes.
///
/// Sources tell it what they see; it never asks. Whoever follows the feed gets every change in order, after the list as it
/// stood or after the last revision they know.
package actor EndpointRegistry {
    /// Where a follower starts.
    package enum Start: Sendable {
        /// The changes since the revision it named.
        case replay([EndpointChange])
        /// The whole list: it named no revision, or one whose successors are no longer kept.
        case snapshot([Endpoint], revision: UInt64)
    }

    private var board: EndpointTable
    private var feed: ChangeLog
    private let now: @Sendable () -> Date

    /// - Parameters:
    ///   - records: What an earlier run kept; these endpoints are listed as offline until they are seen again.
    ///   - trusts: The approvals and secrets that access control holds.
    ///   - retired: Ids that go to no other app.
    ///   - revision: The last revision of that run.
    ///   - now: The wall clock, for what people read.
    package init(
        records: [PersistedEndpoint] = [],
        trusts: [EndpointID: EndpointTrust] = [:],
        retired: RetiredIDs = RetiredIDs(),
        startingAfter revision: UInt64 = 0,
        now: @escaping @Sendable () -> Date = { Date() }
    ) {
        board = EndpointTable(records: records, trusts: trusts, retired: retired)
        feed = ChangeLog(startingAfter: revision)
        self.now = now
    }

    package var endpoints: [Endpoint] { board.endpoints }
    /// The list and the revision it stands at, together.
    package var list: (endpoints: [Endpoint], revision: UInt64) { (board.endpoints, feed.revision) }
    /// The same; nil while `revision` is still the present one.
    package func list(ifChangedSince revision: UInt64?) -> (endpoints: [Endpoint], revision: UInt64)? {
        revision == feed.revision ? nil : list
    }
    package var records: [PersistedEndpoint] { board.records }
    package var retired: RetiredIDs { board.retired }
    package var revision: UInt64 { feed.revision }
    package var refusals: Refusals { board.refusals }

    package func endpoint(_ id: EndpointID) throws(RegistryError) -> Endpoint {
        guard let endpoint = board[id] else { throw .noSuchEndpoint(id.text) }
        return endpoint
    }

    /// The endpoint that a sighting belongs to; nil when it is not listed.
    package func endpoint(seenAs id: Sighting.ID) -> Endpoint? { board.endpoint(seenAs: id) }

    /// Takes in everything a source says, until it ends.
    package func follow(_ events: some AsyncSequence<SightingEvent, Never> & Sendable) async {
        for await event in events { apply(event) }
    }

    package func apply(_ event: SightingEvent) {
        publish(board.apply(event, at: now()))
    }

    /// Takes in what a probe of an endpoint found; nil is success.
    package func report(_ failure: DialError?, of id: EndpointID) {
        publish(board.report(failure, of: id, at: now()))
    }

    /// Takes in what access control holds for an endpoint now.
    package func setTrust(_ trust: EndpointTrust, of id: EndpointID) {
        publish(board.setTrust(trust, of: id, at: now()))
    }

    /// Takes in that another app answered on an approved route than the one that was expected there.
    package func setMismatch(_ app: SanitizedText, on route: Route, of id: EndpointID) {
        publish(board.setMismatch(app, on: route, of: id))
    }

    /// Takes in the name that the server of an endpoint gave itself over an approved route.
    package func setServer(_ name: SanitizedText, version: SanitizedText?, of id: EndpointID) {
        publish(board.setServer(name, version: version, of: id))
    }

    /// Accepts the server that answers there next, whatever name it gives itself: an owner said so.
    package func acceptServer(of id: EndpointID) { publish(board.acceptServer(of: id)) }

    /// Forgets an endpoint that is gone; its id goes to the same app again and to no other one.
    package func forget(_ id: EndpointID) throws(RegistryError) {
        publish([try board.forget(id)])
    }

    /// Every change after `revision`, or from now on with the list as it stands; nothing between the two is lost.
    package func changes(after revision: UInt64? = nil) -> (start: Start, changes: AsyncStream<EndpointChange>) {
        let start =
            revision.flatMap { feed.changes(after: $0) }.map(Start.replay)
            ?? .snapshot(board.endpoints, revision: feed.revision)
        return (start, feed.follow())
    }

    /// How many follow the changes.
    var followerCount: Int { feed.followerCount }

    /// Ends every feed; the daemon is going.
    package func finish() { feed.finish() }

    private func publish(_ outcomes: [EndpointTable.Outcome]) {
        for outcome in outcomes {
            switch outcome {
            case .added(let endpoint): feed.append(.added, endpoint)
            case .changed(let endpoint): feed.append(.changed, endpoint)
            case .removed(let endpoint): feed.append(.removed, endpoint)
            }
        }
    }
}

/// Why the registry could not do what was asked of it.
package enum RegistryError: Error, Equatable {
    case noSuchEndpoint(String)
    /// Forgetting an endpoint that a source still sees would only list it again.
    case stillSeen(EndpointID)
    case nameTaken(String)
}

extension RegistryError: CustomStringConvertible {
    package var description: String {
        switch self {
        case .noSuchEndpoint(let id): "no endpoint is called \"\(SanitizedText(id))\"; `patchbay list` shows them all"
        case .stillSeen(let id):
            "\(id) is still there and would be listed again; only an offline endpoint can be forgotten"
        case .nameTaken(let name):
            "a static endpoint called \"\(SanitizedText(name))\" stands already; choose another name"
        }
    }
}

/// What is kept of an endpoint between two runs of the broker, so that its id outlives them.
package struct PersistedEndpoint: Hashable, Sendable, Codable {
    /// As it was when it was last seen; restored as offline.
    package var endpoint: Endpoint
    /// The source that it was first seen by. Only this source decides which endpoint it is.
    package let source: Sighting.Source
    /// Every key under which its app was seen; one is the usual number.
    package var keys: [IdentityKey]
    /// The exact SRV target, to tell apart two apps whose keys are alike.
    package var host: String?
    /// Ids under which it was listed before its app said its name; they go on meaning it until somebody else has them.
    package var formerIDs: [EndpointID]?

    package init(endpoint: Endpoint, source: Sighting.Source, keys: [IdentityKey], host: String? = nil) {
        self.endpoint = endpoint
        self.source = source
        self.keys = keys
        self.host = host
    }
}
