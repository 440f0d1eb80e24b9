package import FoundationEssentials

/// A person's yes to an endpoint: who said it, when, and to which way of reaching it.
package struct Approval: Hashable, Sendable, Codable, Identifiable {
    /// Where the endpoint was when somebody said yes.
    package enum Place: Hashable, Sendable, Codable {
        case cable(UDID)
        /// Everything that a lookalike would have to have too.
        case network(host: Untrusted, addresses: [Address])
        /// Written down by the owner.
        case configuration
    }

    /// One address on one interface.
    package struct Address: Hashable, Sendable, Codable {
        package let address: String
        package let interface: String?

        package init(_ route: LANRoute) {
            address = route.address
            interface = route.interface
        }
    }

    /// New with every yes.
    package let id: String
    package let endpoint: EndpointID
    package let by: Caller
    package let at: Date
    package let place: Place

    package init(id: String, endpoint: EndpointID, by: Caller, at: Date, place: Place) {
        self.id = id
        self.endpoint = endpoint
        self.by = by
        self.at = at
        self.place = place
    }
}
