package import Model

/// The address of a broker.
package enum BrokerAddress: Hashable, Sendable {
    case unix(path: String)
    /// `127.0.0.1` or `::1`. Other addresses would need encryption.
    case loopback(host: String, port: UInt16)
    /// A unix socket of another machine, reached with the program `ssh`.
    case ssh(SSHDestination)
    /// The remote listener of a broker on another machine, which has the key with this pin. An IPv6 address has no
    /// brackets.
    case remote(host: String, port: UInt16, pin: KeyPin)

    /// True if the broker's own ports are not ports of this machine.
    package var isOnAnotherMachine: Bool {
        switch self {
        case .unix, .loopback: false
        case .ssh, .remote: true
        }
    }

    /// Value of the `Host` header. The broker rejects host names that a web page could send.
    var host: String {
        switch self {
        case .unix, .ssh: "localhost"
        case .loopback, .remote: description
        }
    }
}

extension BrokerAddress: CustomStringConvertible {
    package var description: String {
        switch self {
        case .unix(let path): path
        case .ssh(let destination): destination.description
        case .loopback(let host, let port), .remote(let host, let port, _):
            host.contains(":") ? "[\(host)]:\(port)" : "\(host):\(port)"
        }
    }
}

/// A grant's token. Printing, dumping and reflecting never show its value.
package struct AccessToken: Sendable {
    private let text: String

    package init(_ text: String) { self.text = text }

    /// The Authorization header (RFC 6750, section 2.1).
    var header: (name: String, value: String) { ("Authorization", "Bearer \(text)") }
}

extension AccessToken: CustomStringConvertible, CustomDebugStringConvertible, CustomReflectable {
    package var description: String { "(token)" }
    package var debugDescription: String { description }
    package var customMirror: Mirror { Mirror(self, children: []) }
}
