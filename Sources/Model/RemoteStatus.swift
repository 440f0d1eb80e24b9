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

    package init(
        state: State,
        address: String?,
        configured: Bool,
        pin: KeyPin?,
        reachable: [String],
        connections: Int,
        refusedHandshakes: Int,
        problem: String?
    ) {
        self.state = state
        self.address = address
        self.configured = configured
        self.pin = pin
        self.reachable = reachable
        self.connections = connections
        self.refusedHandshakes = refusedHandshakes
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
