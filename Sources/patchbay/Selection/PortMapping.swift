import Glibc
import Model

/// One word of `patchbay forward`: where to listen, and to a phone, on which of its ports it ends.
///
/// | to a phone | to an endpoint |
/// |---|---|
/// | `9876` (the same port here), `8080:9876`, `0:9876`, `tcp:0:9876` | `8080`, `tcp:0` |
/// | `127.0.0.1:8080:9876`, `tcp:[::1]:8080:9876` | `127.0.0.1:8080`, `tcp:[::1]:8080` |
/// | `unix:/run/shop.sock:9876` | `unix:/run/shop.sock` |
struct PortMapping: Equatable {
    let local: ListenAddress
    /// The port on the phone; nil for endpoints, which have their own.
    let remote: UInt16?

    /// - Parameters:
    ///   - text: `[LOCAL:]REMOTE`.
    ///   - source: The address of `--source-address`, for a LOCAL that names none.
    /// - Throws: `CLIError`.
    init(toDevice text: String, source: String?) throws(CLIError) {
        let parts = text.split(separator: ":", omittingEmptySubsequences: false)
        guard let last = parts.last, let port = UInt16(last), port > 0, last.allSatisfy(\.isNumber) else {
            throw .usage(
                "\"\(SanitizedText(text))\" does not end with a port of the phone, 1 to 65535",
                try: "8080:9876, tcp:0:9876 or unix:/tmp/shop.sock:9876"
            )
        }
        remote = port
        guard parts.count > 1 else {
            local = .tcp(host: source, port: port)
            return
        }
        let head = String(text.dropLast(last.count + 1))
        local = try Self.local(head, of: text, source: source, example: "8080:\(port) or tcp:127.0.0.1:0:\(port)")
    }

    /// - Parameters:
    ///   - text: `LOCAL`; nil lets the kernel choose a port.
    ///   - source: The address of `--source-address`, for a LOCAL that names none.
    /// - Throws: `CLIError`.
    init(toEndpoint text: String?, source: String?) throws(CLIError) {
        remote = nil
        guard let text else {
            local = .tcp(host: source, port: 0)
            return
        }
        local = try Self.local(text, of: text, source: source, example: "8080, tcp:0 or unix:/tmp/shop.sock")
    }

    private static func local(
        _ text: String,
        of whole: String,
        source: String?,
        example: String
    ) throws(CLIError) -> ListenAddress {
        guard let address = ListenAddress(text) else {
            let place = text == whole ? "" : ", in \"\(SanitizedText(whole, limit: 200))\""
            throw .usage("\(Self.fault(in: text))\(place)", try: example)
        }
        switch address {
        // `8080:9876` would be a host named 8080: somebody gave a phone's port where there is none to give.
        case .tcp(let host?, _) where host.allSatisfy(\.isNumber):
            throw .usage("\"\(host)\" in \"\(SanitizedText(whole))\" is no address to listen on", try: example)
        case .tcp(let host?, _) where !Self.isNumeric(host):
            throw .usage(
                "\"\(SanitizedText(host))\" is no address to listen on: it must be numeric, or localhost",
                try: example
            )
        case .tcp(let host?, _) where source != nil:
            throw .usage(
                "\(whole) names the address \(host) and --source-address another",
                try: "leave one of them out"
            )
        case .tcp(nil, let port): return .tcp(host: source, port: port)
        case .unix where source != nil:
            throw .usage("--source-address means nothing to the socket \(text)", try: "leave --source-address out")
        case .tcp, .unix: return address
        }
    }

    /// Why a text is no local address.
    private static func fault(in text: String) -> String {
        let shown = "\"\(SanitizedText(text, limit: 200))\""
        if SanitizedText(text, limit: .max).text != text { return "\(shown) holds characters that do not print" }
        if text.hasPrefix("unix:") {
            let path = text.dropFirst(5)
            if !path.hasPrefix("/") { return "\(shown) is not an absolute path, which a unix socket needs" }
            return
                "\(shown) has \(path.utf8.count) bytes, and the path of a unix socket at most \(ListenAddress.pathLimit)"
        }
        let rest = text.hasPrefix("tcp:") ? text.dropFirst(4) : text[...]
        let port = rest.split(separator: ":", omittingEmptySubsequences: false).last ?? ""
        if UInt16(port) == nil || !port.allSatisfy(\.isNumber) {
            return "\"\(SanitizedText(port))\" is no local port, 0 to 65535"
        }
        if rest.dropLast(port.count + 1).contains(":") { return "\(shown) is an IPv6 address without brackets" }
        return "\(shown) is not a local address"
    }

    private static func isNumeric(_ host: String) -> Bool {
        var room = in6_addr()
        // A scope (`%eth0`) is for the broker to look up.
        let address = String(host.prefix { $0 != "%" })
        return host == "localhost" || inet_pton(AF_INET, host, &room) == 1 || inet_pton(AF_INET6, address, &room) == 1
    }

    /// A pair that the parser would take for an option: `-1:9876`.
    ///
    /// - Throws: `CLIError`.
    static func refuseNegative(_ arguments: [String]) throws(CLIError) {
        guard arguments.first == "forward" else { return }
        for word in arguments.prefix(while: { $0 != "--" }) {
            guard word.hasPrefix("-"), word.dropFirst().first?.isNumber == true else { continue }
            throw .usage(
                "\"\(SanitizedText(word))\" begins with no port, 0 to 65535",
                try: "patchbay forward 8080:9876"
            )
        }
    }
}
