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

/// Ports that follow each other, `9000-9009` in a pair of `patchbay forward`.
struct PortRange: Equatable {
    /// More than a phone has debug servers, fewer than anybody types by accident.
    static let limit = 256

    let ports: ClosedRange<UInt16>

    /// Nil for a word that is no range; a single port is none.
    init?(_ text: some StringProtocol) {
        let ends = text.split(separator: "-", omittingEmptySubsequences: false)
        guard ends.count == 2, ends.allSatisfy({ $0.allSatisfy(\.isNumber) }), let first = UInt16(ends[0]),
            let last = UInt16(ends[1]), first > 0, first <= last
        else { return nil }
        ports = first...last
    }

    /// A pair for each port of the ranges in `[LOCAL:]REMOTE`; the text alone when there is no range in it.
    ///
    /// `9000-9009` is the same ports here, `0:9000-9009` any free ones, `8000-8009:9000-9009` one for one.
    /// - Throws: `CLIError`.
    static func expand(_ text: String) throws(CLIError) -> [String] {
        var parts = text.split(separator: ":", omittingEmptySubsequences: false).map(String.init)
        guard !text.hasPrefix("unix:"), let remote = parts.popLast().flatMap({ PortRange($0) }) else { return [text] }
        guard remote.ports.count <= limit else {
            throw .usage("\"\(SanitizedText(text))\" is more than \(limit) ports", try: "a shorter range, or several")
        }
        guard let local = parts.popLast() else { return remote.ports.map { "\($0)" } }
        if local == "0" { return remote.ports.map { (parts + ["0", "\($0)"]).joined(separator: ":") } }
        guard let range = PortRange(local), range.ports.count == remote.ports.count else {
            throw .usage(
                "\"\(SanitizedText(text))\" has not as many local ports as ports of the phone",
                try: "0:\(remote), \(remote) or \(remote):\(remote)"
            )
        }
        return zip(range.ports, remote.ports).map { (parts + ["\($0)", "\($1)"]).joined(separator: ":") }
    }
}

extension PortRange: CustomStringConvertible {
    var description: String { "\(ports.lowerBound)-\(ports.upperBound)" }
}
