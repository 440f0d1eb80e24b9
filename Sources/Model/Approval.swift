package import FoundationEssentials

/// An owner's consent to connect to one endpoint at certain network addresses.
///
/// USB routes and configured addresses need no approval. `ApprovalPolicy` has the rules.
package struct Approval: Hashable, Sendable, Codable, Identifiable {
    /// One address on one interface.
    package struct Address: Hashable, Sendable, Codable {
        package let address: String
        package let interface: String?

        package init(_ route: NetworkRoute) {
            address = route.address
            interface = route.interface
        }

        /// The address with its interface: `192.168.1.20%wlan0`.
        package var location: String { interface.map { "\(address)%\($0)" } ?? address }
    }

    /// A random identifier, new for every approval.
    package let id: String
    package let endpoint: EndpointID
    package let approvedBy: AuditActor
    package let approvedAt: Date
    /// The app that was announced at the addresses. Another app at the same address is not approved.
    package let app: SanitizedText
    /// The machine that announced the addresses.
    package let machine: SanitizedText
    package let addresses: [Address]
    /// The approved port. Required for ports below 1024 only, because other ports change with each launch.
    package let port: UInt16?

    /// The key `host` is older than the word machine, which leaves the word host to teams.
    private enum CodingKeys: String, CodingKey {
        case id, endpoint, approvedBy, approvedAt, app
        case machine = "host"
        case addresses, port
    }

    package init(
        id: String,
        endpoint: EndpointID,
        approvedBy: AuditActor,
        approvedAt: Date,
        app: SanitizedText,
        machine: SanitizedText,
        addresses: [Address],
        port: UInt16? = nil
    ) {
        self.id = id
        self.endpoint = endpoint
        self.approvedBy = approvedBy
        self.approvedAt = approvedAt
        self.app = app
        self.machine = machine
        self.addresses = addresses
        self.port = port
    }
}

/// An owner's refusal to connect to one endpoint at certain network addresses. It ends with the approval of an address.
package struct Denial: Hashable, Sendable, Codable {
    package let endpoint: EndpointID
    /// The owner and the time of the last denied address.
    package let deniedBy: AuditActor
    package let deniedAt: Date
    /// The app that was announced at the addresses, and the machine that announced them. For people only.
    package let app: SanitizedText
    package let machine: SanitizedText
    /// The numeric addresses, each on every interface.
    package private(set) var addresses: [String]

    private enum CodingKeys: String, CodingKey {
        case endpoint, deniedBy, deniedAt, app
        case machine = "host"
        case addresses
    }

    package init(
        endpoint: EndpointID,
        deniedBy: AuditActor,
        deniedAt: Date,
        app: SanitizedText,
        machine: SanitizedText,
        addresses: [String]
    ) {
        self.endpoint = endpoint
        self.deniedBy = deniedBy
        self.deniedAt = deniedAt
        self.app = app
        self.machine = machine
        self.addresses = addresses
    }

    /// A copy without an address that is approved now. Nil if no address is left.
    package func without(_ address: String) -> Denial? {
        var denial = self
        denial.addresses.removeAll { $0 == address }
        return denial.addresses.isEmpty ? nil : denial
    }
}

/// The network address to deny: the body of `PUT /v1/endpoints/{id}/denial`.
package struct DenialSpec: Hashable, Sendable, Codable {
    /// One of the endpoint's current numeric addresses. Nil means all that are not approved.
    package let address: String?

    package init(address: String? = nil) { self.address = address }
}

/// The network address to approve: the body of `PUT /v1/endpoints/{id}/approval`.
package struct ApprovalSpec: Hashable, Sendable, Codable {
    /// One of the endpoint's current numeric addresses. Nil means its preferred network address.
    package let address: String?
    /// The endpoint's port. Required if the port is below 1024.
    package let port: UInt16?

    package init(address: String? = nil, port: UInt16? = nil) {
        self.address = address
        self.port = port
    }
}
