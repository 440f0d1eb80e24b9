/// The address of a server of etcd: `https://HOST[:PORT]`.
package struct EtcdEndpoint: Hashable, Sendable, CustomStringConvertible {
    /// A DNS name, or an IP address without brackets.
    package let host: String
    package let port: UInt16

    /// The port of etcd for clients, as registered with IANA.
    package static let defaultPort: UInt16 = 2379

    package init(host: String, port: UInt16 = defaultPort) {
        self.host = host
        self.port = port
    }

    /// Parses a URL. Returns nil for other text, for `http`, and for a URL with a path.
    package init?(_ text: some StringProtocol) {
        guard text.hasPrefix("https://") else { return nil }
        var authority = text.dropFirst("https://".count)
        if authority.hasSuffix("/") { authority = authority.dropLast() }
        let host: Substring
        let rest: Substring
        if authority.hasPrefix("["), let end = authority.firstIndex(of: "]") {
            host = Substring(authority[authority.index(after: authority.startIndex)..<end])
            rest = Substring(authority[authority.index(after: end)...])
        } else {
            let end = authority.firstIndex(of: ":") ?? authority.endIndex
            host = Substring(authority[..<end])
            rest = Substring(authority[end...])
        }
        let allowed = host.utf8.allSatisfy { $0 > 0x20 && $0 < 0x7f && !"/?#@[]".utf8.contains($0) }
        guard !host.isEmpty, allowed else { return nil }
        if rest.isEmpty {
            self.init(host: String(host))
        } else {
            guard rest.hasPrefix(":"), let port = UInt16(rest.dropFirst()), port > 0 else { return nil }
            self.init(host: String(host), port: port)
        }
    }

    /// The host and the port, as HTTP/2 sends them in `:authority`.
    var authority: String { host.utf8.contains(UInt8(ascii: ":")) ? "[\(host)]:\(port)" : "\(host):\(port)" }

    package var description: String { "https://\(authority)" }
}
