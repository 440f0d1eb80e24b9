import Client
import Model

/// What `--broker` names: `127.0.0.1:7282`, also as a URL, or the path of a socket.
enum BrokerAddressArgument {
    /// - Throws: `CLIError`.
    static func address(_ text: String) throws(CLIError) -> BrokerAddress {
        if text.hasPrefix("/") { return .unix(path: text) }
        var place = text[...]
        if place.hasPrefix("http://") { place = place.dropFirst("http://".count) }
        if place.hasSuffix("/") { place = place.dropLast() }
        guard let colon = place.lastIndex(of: ":"), let port = UInt16(place[place.index(after: colon)...]), port > 0
        else {
            throw .usage("\"\(SanitizedText(text))\" is no broker's address", try: "--broker 127.0.0.1:7282")
        }
        switch place[..<colon] {
        case "127.0.0.1", "localhost": return .loopback(host: "127.0.0.1", port: port)
        case "[::1]": return .loopback(host: "::1", port: port)
        case let host:
            throw CLIError(
                status: .notPermitted,
                message:
                    "\(SanitizedText(host)) is another machine, and calling brokers over the network is not in this "
                    + "version; no token was sent",
                remedy: "--broker 127.0.0.1:\(port) on that machine itself"
            )
        }
    }
}
