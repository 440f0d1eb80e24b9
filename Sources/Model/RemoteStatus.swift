package import FoundationEssentials

/// The state of the remote listener: the response to `GET /v1/remote`.
package struct RemoteStatus: Hashable, Sendable, Codable {
    package enum State: String, Hashable, Sendable, Codable {
        case off
        case listening
        /// The address cannot be used now. The broker retries.
        case waiting
    }

    package let state: State
    /// The numeric address with its port. Nil if the listener is off.
    package let address: String?
    /// True if the configuration file sets the address. `PUT /v1/remote` is then refused.
    package let configured: Bool
    /// The pin of the broker's key. Nil until the listener was on for the first time.
    package let pin: KeyPin?
    /// The addresses with their port at which other machines may reach the broker.
    package let reachable: [String]
    /// The number of open connections.
    package let connections: Int
    /// The number of TLS handshakes that failed or took too long, since the start of the broker.
    package let refusedHandshakes: Int
    /// A sentence that says why the listener waits.
    package let problem: String?
    /// Nil while the listener is off.
    package let certificates: RemoteCertificates?

    package init(
        state: State,
        address: String?,
        configured: Bool,
        pin: KeyPin?,
        reachable: [String],
        connections: Int,
        refusedHandshakes: Int,
        problem: String?,
        certificates: RemoteCertificates? = nil
    ) {
        self.state = state
        self.address = address
        self.configured = configured
        self.pin = pin
        self.reachable = reachable
        self.connections = connections
        self.refusedHandshakes = refusedHandshakes
        self.problem = problem
        self.certificates = certificates
    }
}

/// The certificates that clients of the remote listener get.
package struct RemoteCertificates: Hashable, Sendable, Codable {
    /// A certificate of the owner's own, for clients that ask for one of its names.
    package struct Configured: Hashable, Sendable, Codable {
        package let names: [String]
        package let expiresAt: Date

        package init(names: [String], expiresAt: Date) { (self.names, self.expiresAt) = (names, expiresAt) }
    }

    /// The names and addresses in the certificate of the pinned key.
    package let names: [String]
    /// The end of that certificate, which the broker issues again in time.
    package let expiresAt: Date
    /// The certificate of the authority that clients without a pin can trust, as PEM.
    package let authority: String
    package let configured: Configured?
    /// The reason why the owner's files are not used as they are now.
    package let problem: String?

    package init(names: [String], expiresAt: Date, authority: String, configured: Configured?, problem: String?) {
        self.names = names
        self.expiresAt = expiresAt
        self.authority = authority
        self.configured = configured
        self.problem = problem
    }
}

extension RemoteStatus {
    /// The port of the listener; nil if the listener is off.
    package var port: UInt16? { address.flatMap { UInt16($0.split(separator: ":").last ?? "") } }

    /// The addresses of `reachable`, without brackets and ports.
    package var hosts: [String] {
        reachable.compactMap { address in
            address.lastIndex(of: ":").map { String(address[..<$0].drop { $0 == "[" }.prefix { $0 != "]" }) }
        }
    }
}

/// Turns the remote listener on or off: the body of `PUT /v1/remote`.
package struct RemoteSpec: Hashable, Sendable, Codable {
    /// Every IPv4 address of the machine, on the port after the one of the API.
    package static let standardAddress = "0.0.0.0:7283"

    package let enabled: Bool
    /// A numeric address with its port. Nil means `standardAddress`.
    package let address: String?

    package init(enabled: Bool, address: String? = nil) {
        self.enabled = enabled
        self.address = address
    }
}
