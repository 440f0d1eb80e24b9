package import Model

/// The list of endpoints that the clients of the broker see, and its changes.
///
/// `EndpointRegistry` lists the endpoints of this host. In a team, the list of the module `Team` adds those of the other
/// hosts. A part that probes, dials, saves or advertises endpoints has the registry, so it never sees another host's.
package protocol EndpointListing: Sendable {
    /// The hosts of the team; nil without a team.
    var hosts: ListedHosts? { get }

    /// The endpoints, in the order of their IDs, and the revision of the list.
    var list: (endpoints: [Endpoint], revision: UInt64) { get async }

    var revision: UInt64 { get async }

    /// The revision of the last event. `revision` is above it if only the state of a host has changed since.
    var lastChangeRevision: UInt64 { get async }

    /// Returns the endpoint with this ID or former ID. The ID may name this host.
    func endpoint(_ id: EndpointID) async throws(RegistryError) -> Endpoint

    /// Subscribes to the changes. None is lost.
    ///
    /// - Parameter revision: The last revision that the subscriber knows; nil for the list.
    /// - Returns: The changes after that revision, or the list, and the stream of later changes.
    func changes(
        after revision: UInt64?
    ) async -> (start: EndpointSubscriptionStart, changes: AsyncStream<EndpointChange>)
}

extension EndpointListing {
    /// The endpoints, in the order of their IDs.
    package var endpoints: [Endpoint] { get async { await list.endpoints } }
}

/// The starting point of a subscription.
package enum EndpointSubscriptionStart: Sendable {
    /// The changes since the given revision.
    case replay([EndpointChange])
    /// The whole list. Used if no revision was given, or if the changes after it are no longer stored.
    case snapshot([Endpoint], revision: UInt64)
}
