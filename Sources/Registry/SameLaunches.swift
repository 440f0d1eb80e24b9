package import Model
import Synchronization

/// The proof that an advertisement and an endpoint on a cable reach one launch of an app. Both servers accepted the
/// secret that is stored for each.
///
/// The secret is a random token of the launch. A machine that does not have the token cannot cause the proof.
package struct SameLaunch: Hashable, Sendable {
    /// An endpoint, and the route and launch that accepted its secret.
    package struct Side: Hashable, Sendable {
        package let id: EndpointID
        package let route: Route
        /// `EndpointRoute.launch`.
        package let launch: String

        /// Returns whether the endpoint still has this launch on this route, approved and with a stored secret.
        func isCurrent(in endpoint: Endpoint) -> Bool {
            endpoint.state != .offline && endpoint.state != .blocked
                && endpoint.routes.contains {
                    $0.route == route && $0.launch == launch && $0.isApproved && $0.isSecretHeld
                }
        }
    }

    package let wireless: Side
    package let cabled: Side

    package init(
        wireless: Endpoint,
        over wirelessRoute: EndpointRoute,
        cabled: Endpoint,
        over cabledRoute: EndpointRoute
    ) {
        self.wireless = Side(id: wireless.id, route: wirelessRoute.route, launch: wirelessRoute.launch)
        self.cabled = Side(id: cabled.id, route: cabledRoute.route, launch: cabledRoute.launch)
    }

    func involves(_ id: EndpointID) -> Bool { wireless.id == id || cabled.id == id }
}

/// The current proofs. A proof ends with either launch, route, approval or secret.
struct SameLaunches: Sendable {
    private var proofs: [EndpointID: SameLaunch] = [:]

    /// The endpoint on a cable that reaches the same launch as an advertisement.
    func cabled(for wireless: EndpointID) -> EndpointID? { proofs[wireless]?.cabled.id }

    mutating func insert(_ proof: SameLaunch) { proofs[proof.wireless.id] = proof }

    /// Ends the proofs about an endpoint and returns their advertisements.
    mutating func remove(_ id: EndpointID) -> Set<EndpointID> { remove { $0.involves(id) } }

    /// Ends the proofs that an endpoint does not support any more, and returns their advertisements. Nil means an
    /// endpoint that is not listed.
    mutating func update(_ id: EndpointID, _ endpoint: Endpoint?) -> Set<EndpointID> {
        remove { proof in
            [proof.wireless, proof.cabled].contains { side in
                side.id == id && endpoint.map(side.isCurrent) != true
            }
        }
    }

    private mutating func remove(where isEnded: (SameLaunch) -> Bool) -> Set<EndpointID> {
        let ended = Set(proofs.values.filter(isEnded).map(\.wireless.id))
        for id in ended { proofs[id] = nil }
        return ended
    }
}

/// The phones of endpoints without a cable, as far as a cabled endpoint reaches the same launch
/// (`Endpoint.sameLaunchAs`).
///
/// Readable without the actor, so that a lease is checked at the same moment as it is used.
package final class LinkedPhones: Sendable {
    private let phones = Mutex<[EndpointID: UDID]>([:])

    /// The phones by the IDs of the endpoints without a cable.
    package var all: [EndpointID: UDID] { phones.withLock { $0 } }

    /// Records the phone of an endpoint; nil if the endpoint has no link.
    func set(_ phone: UDID?, of id: EndpointID) {
        phones.withLock { if $0[id] != phone { $0[id] = phone } }
    }
}
