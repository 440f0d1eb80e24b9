import Client
import Model

/// The broker of another host of the team: its addresses, and the identity that it must prove.
struct MemberAddress: Hashable, Sendable {
    let host: HostName
    /// The pin of the key in the host's certificate.
    let key: KeyPin
    /// The addresses of its team listener, in the order in which they are tried.
    let brokers: [BrokerAddress]

    /// - Parameters:
    ///   - host: The name of the host, which its certificate has.
    ///   - key: The pin of its key.
    ///   - addresses: `ADDRESS:PORT`, with brackets around an IPv6 address. Other texts are ignored.
    init(host: HostName, key: KeyPin, addresses: [String]) {
        self.host = host
        self.key = key
        brokers = addresses.compactMap { Self.parse($0).map { .remote(host: $0.host, port: $0.port, pin: key) } }
    }

    /// Parses `ADDRESS:PORT`.
    static func parse(_ text: String) -> (host: String, port: UInt16)? {
        guard let colon = text.lastIndex(of: ":"), let port = UInt16(text[text.index(after: colon)...]), port > 0 else {
            return nil
        }
        var host = text[..<colon]
        if host.hasPrefix("["), host.hasSuffix("]") {
            host = host.dropFirst().dropLast()
        } else if host.contains(":") {
            return nil
        }
        return host.isEmpty ? nil : (String(host), port)
    }
}
