import Model
import SystemIO

/// An address that other hosts dial: `HOST`, `HOST:PORT`, `[IPV6]` or `[IPV6]:PORT`.
package struct TeamAddress: Hashable, Sendable {
    /// A host name or a numeric address, without brackets.
    package let host: String
    /// Nil means the port of the team listener.
    package let port: UInt16?

    package init(host: String, port: UInt16?) {
        self.host = host
        self.port = port
    }

    package init?(_ text: some StringProtocol) {
        var text = String(text)
        // An IPv6 address without brackets has no port.
        if !text.hasPrefix("["), text.count(where: { $0 == ":" }) > 1 { text = "[\(text)]" }
        let hasPort = text.lastIndex(of: ":").map { text[$0...].contains("]") == false } ?? false
        guard case .tcp(let host?, let port)? = ListenAddress("tcp:\(text)\(hasPort ? "" : ":1")"), port > 0,
            PairingString.isHost(host)
        else { return nil }
        self.init(host: host, port: hasPort ? port : nil)
    }

    /// Returns the address as `ADDRESS:PORT`.
    package func description(defaultPort: UInt16) -> String {
        TeamAddress(host: host, port: port ?? defaultPort).description
    }
}

extension TeamAddress: CustomStringConvertible {
    package var description: String {
        let host = host.contains(":") ? "[\(host)]" : host
        return port.map { "\(host):\($0)" } ?? host
    }
}
