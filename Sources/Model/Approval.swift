package import FoundationEssentials

/// An owner's consent to reach one endpoint at certain network addresses.
///
/// A cable and an address that the owner wrote down need none: `ApprovalPolicy` has the rules.
package struct Approval: Hashable, Sendable, Codable, Identifiable {
    /// One address on one interface.
    package struct Address: Hashable, Sendable, Codable {
        package let address: String
        package let interface: String?

        package init(_ route: LANRoute) {
            address = route.address
            interface = route.interface
        }

        /// The address and its interface: `192.168.1.20%wlan0`.
        package var place: String { interface.map { "\(address)%\($0)" } ?? address }
    }

    /// New with every approval.
    package let id: String
    package let endpoint: EndpointID
    package let by: AuditActor
    package let at: Date
    /// The app that was announced there. Another app at the same address is not approved.
    package let app: SanitizedText
    /// The host that announced the addresses.
    package let host: SanitizedText
    package let addresses: [Address]
    /// The port that the owner named; needed for ports below 1024 only. Other ports change with each launch.
    package let port: UInt16?

    package init(
        id: String,
        endpoint: EndpointID,
        by: AuditActor,
        at: Date,
        app: SanitizedText,
        host: SanitizedText,
        addresses: [Address],
        port: UInt16? = nil
    ) {
        self.id = id
        self.endpoint = endpoint
        self.by = by
        self.at = at
        self.app = app
        self.host = host
        self.addresses = addresses
        self.port = port
    }
}

/// The network address to approve: the body of `POST /v1/endpoints/{id}/approve`.
package struct ApprovalSpec: Hashable, Sendable, Codable {
    /// A numeric address that the endpoint has now; nil is its preferred network address.
    package let address: String?
    /// Needed when the endpoint is on a port below 1024.
    package let port: UInt16?

    package init(address: String? = nil, port: UInt16? = nil) {
        self.address = address
        self.port = port
    }
}
