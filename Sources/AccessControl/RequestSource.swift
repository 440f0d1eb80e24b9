/// Which door a call came through.
package enum RequestSource: Hashable, Sendable, Codable {
    /// The unix socket; the kernel says which user is at the other end.
    case unix(uid: UInt32)
    /// Plain TCP on the loopback: anybody on this machine. The address is without a port, which a caller can choose.
    case tcp(address: String)
    /// TLS from somewhere else, with the fingerprint of the key that the other side proved to have.
    case tls(address: String, key: String)
    /// Patchbay itself.
    case broker
}

extension RequestSource: CustomStringConvertible {
    package var description: String {
        switch self {
        case .unix(let uid): "unix:\(uid)"
        case .tcp(let address): "tcp:\(address)"
        case .tls(let address, _): "tls:\(address)"
        case .broker: "broker"
        }
    }
}
