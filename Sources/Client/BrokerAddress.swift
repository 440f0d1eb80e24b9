/// Where a broker takes calls.
package enum BrokerAddress: Hashable, Sendable {
    case unix(path: String)
    /// `127.0.0.1` or `::1`: nothing else is called without encryption.
    case loopback(host: String, port: UInt16)

    /// What requests say in `Host`; the broker refuses what a web page could make them say.
    var host: String {
        switch self {
        case .unix: "localhost"
        case .loopback: description
        }
    }
}

extension BrokerAddress: CustomStringConvertible {
    package var description: String {
        switch self {
        case .unix(let path): path
        case .loopback(let host, let port): host.contains(":") ? "[\(host)]:\(port)" : "\(host):\(port)"
        }
    }
}
