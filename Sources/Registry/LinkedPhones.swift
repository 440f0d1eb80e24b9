package import Model
import Synchronization

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
