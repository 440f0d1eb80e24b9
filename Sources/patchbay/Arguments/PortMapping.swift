import ArgumentParser
import Glibc
import Model

/// One mapping of `patchbay forward`: the local address and, for a phone, the remote socket.
///
/// | to a phone | to an endpoint |
/// |---|---|
/// | `9876` (the same port here), `8080:9876`, `0:9876`, `tcp:0:9876` | `8080`, `tcp:0` |
/// | `127.0.0.1:8080:9876`, `tcp:[::1]:8080:9876` | `127.0.0.1:8080`, `tcp:[::1]:8080` |
/// | `unix:/run/shop.sock:9876` | `unix:/run/shop.sock` |
/// | `8080:localabstract:chrome_devtools_remote` | |
struct PortMapping: Equatable {
    let local: ListenAddress
    /// The socket on the phone; nil for endpoints, because their routes have one.
    let remote: DeviceSocket?

    /// Parses a mapping to a phone.
    ///
    /// - Parameters:
    ///   - text: `[LOCAL:]REMOTE`.
    ///   - source: The value of `--source-address`; applies if LOCAL has no address.
    /// - Throws: `CLIError` for an invalid mapping.
    init(toDevice text: String, source: String?) throws(CLIError) {
        if let separator = text.firstRange(of: ":\(AbstractSocketName.adbPrefix)") {
            guard let name = AbstractSocketName(text[separator.upperBound...]) else {
                throw .usage(
                    "\"\(SanitizedText(text))\" does not end with the name of an abstract socket",
                    try: "8080:\(AbstractSocketName.adbPrefix)chrome_devtools_remote"
                )
            }
            remote = .abstract(name)
            let head = String(text[..<separator.lowerBound])
            local = try Self.local(head, of: text, source: source, example: "8080:localabstract:\(name)")
            return
        }
        let parts = text.split(separator: ":", omittingEmptySubsequences: false)
        guard let last = parts.last, let port = UInt16(last), port > 0, last.allSatisfy(\.isNumber) else {
            // A number is a mistyped port, and any other word probably an endpoint.
            let id = text.contains(where: \.isLetter) ? EndpointID(text) : nil
            throw .usage(
                "\"\(SanitizedText(text))\" does not end with a phone port, 1 to 65535",
                try: "8080:9876, tcp:0:9876 or unix:/tmp/shop.sock:9876; to an endpoint: patchbay forward -e "
                    + (id?.text ?? "ID")
            )
        }
        remote = .port(port)
        guard parts.count > 1 else {
            local = .tcp(host: source, port: port)
            return
        }
        let head = String(text.dropLast(last.count + 1))
        local = try Self.local(head, of: text, source: source, example: "8080:\(port) or tcp:127.0.0.1:0:\(port)")
    }

    /// Parses a mapping to an endpoint.
    ///
    /// - Parameters:
    ///   - text: `LOCAL`; nil lets the kernel choose a port.
    ///   - source: The value of `--source-address`; applies if LOCAL has no address.
    ///   - endpoint: The endpoint, for hints.
    /// - Throws: `CLIError` for an invalid mapping.
    init(toEndpoint text: String?, source: String?, endpoint: String = "ID") throws(CLIError) {
        remote = nil
        guard let text else {
            local = .tcp(host: source, port: 0)
            return
        }
        local = try Self.local(
            text,
            of: text,
            source: source,
            endpoint: endpoint,
            example: "8080, tcp:0 or unix:/tmp/shop.sock"
        )
    }

    private static func local(
        _ text: String,
        of whole: String,
        source: String?,
        endpoint: String = "ID",
        example: String
    ) throws(CLIError) -> ListenAddress {
        guard let address = ListenAddress(text) else {
            let context = text == whole ? "" : ", in \"\(SanitizedText(whole, limit: 200))\""
            throw .usage("\(Self.fault(in: text))\(context)", try: example)
        }
        switch address {
        // `8080:9876` parses as the host 8080: the mapping has a phone port, but the target is an endpoint.
        case .tcp(let host?, _) where text == whole && host.allSatisfy(\.isNumber):
            throw .usage(
                "an endpoint has its own port, so \"\(SanitizedText(whole))\" has one too many",
                try: "patchbay forward \(host) --endpoint \(endpoint.shellQuoted)"
            )
        case .tcp(let host?, _) where host.allSatisfy(\.isNumber):
            throw .usage("\"\(host)\" in \"\(SanitizedText(whole))\" is not an address to listen on", try: example)
        case .tcp(let host?, _) where !Self.isNumeric(host):
            throw .usage(
                "\"\(SanitizedText(host))\" is not an address to listen on: use a numeric address or localhost",
                try: example
            )
        case .tcp(let host?, _) where source != nil:
            throw .usage(
                "\(whole) has the address \(host), and --source-address has another address",
                try: "remove one of the two addresses"
            )
        case .tcp(nil, let port): return .tcp(host: source, port: port)
        case .unix where source != nil:
            throw .usage("--source-address does not apply to the Unix socket \(text)", try: "remove --source-address")
        case .tcp, .unix: return address
        }
    }

    /// Returns the reason why a text is not a local address.
    private static func fault(in text: String) -> String {
        let shown = "\"\(SanitizedText(text, limit: 200))\""
        if SanitizedText(text, limit: .max).text != text { return "\(shown) contains non-printing characters" }
        if text.hasPrefix("unix:") {
            let path = text.dropFirst(5)
            if !path.hasPrefix("/") { return "\(shown) is not an absolute path, as a Unix socket requires" }
            return
                "\(shown) has \(path.utf8.count) bytes; the path of a Unix socket has at most \(ListenAddress.pathLimit)"
        }
        let rest = text.hasPrefix("tcp:") ? text.dropFirst(4) : text[...]
        let port = rest.split(separator: ":", omittingEmptySubsequences: false).last ?? ""
        if UInt16(port) == nil || !port.allSatisfy(\.isNumber) {
            return "\"\(SanitizedText(port))\" is not a local port, 0 to 65535"
        }
        if rest.dropLast(port.count + 1).contains(":") { return "\(shown) is an IPv6 address without brackets" }
        return "\(shown) is not a local address"
    }

    private static func isNumeric(_ host: String) -> Bool {
        var room = in6_addr()
        // The broker resolves a scope such as `%eth0`.
        let address = String(host.prefix { $0 != "%" })
        return host == "localhost" || inet_pton(AF_INET, host, &room) == 1 || inet_pton(AF_INET6, address, &room) == 1
    }

    /// Joins the two words of `adb forward` to one mapping: `tcp:7777 tcp:9876` to `tcp:7777:9876`. Returns other words
    /// unchanged.
    static func joinADBWords(_ words: [String]) -> [String] {
        let file = "localfilesystem:"
        guard words.count == 2, words[0].hasPrefix("tcp:") || words[0].hasPrefix(file) else { return words }
        let local = words[0].hasPrefix(file) ? "unix:\(words[0].dropFirst(file.count))" : words[0]
        if words[1].hasPrefix(AbstractSocketName.adbPrefix) { return ["\(local):\(words[1])"] }
        // `tcp:7777` alone is no mapping, because a mapping ends with a port of the phone after a local one.
        let remote = words[1].dropFirst("tcp:".count)
        guard words[1].hasPrefix("tcp:"), !remote.contains(":") else { return words }
        return ["\(local):\(remote)"]
    }

    /// Rejects mappings such as `-1:9876`, which ArgumentParser reports as unknown options.
    ///
    /// - Throws: `CLIError` for the first argument that starts with a negative number.
    static func refuseNegative(_ arguments: [String]) throws(CLIError) {
        guard arguments.first == "forward" else { return }
        for word in arguments.prefix(while: { $0 != "--" }) {
            guard word.hasPrefix("-"), word.dropFirst().first?.isNumber == true else { continue }
            throw .usage(
                "\"\(SanitizedText(word))\" does not start with a port, 0 to 65535",
                try: "patchbay forward 8080:9876"
            )
        }
    }
}

/// A port on the command line.
enum PortArgument {
    /// - Throws: `ValidationError` with the range, for any text but a number from 1 to 65535.
    @Sendable static func parse(_ text: String) throws -> UInt16 {
        guard let port = UInt16(text), port > 0, text.allSatisfy(\.isNumber) else {
            throw ValidationError("Enter a port from 1 to 65535.")
        }
        return port
    }
}

/// A port range such as `9000-9009` in a mapping of `patchbay forward`.
struct PortRange: Equatable {
    /// The maximum number of ports in a range. Protects from typing errors such as `1-65535`.
    static let limit = 256

    let ports: ClosedRange<UInt16>

    /// Parses a range; nil for any other text, also for a single port.
    init?(_ text: some StringProtocol) {
        let ends = text.split(separator: "-", omittingEmptySubsequences: false)
        guard ends.count == 2, ends.allSatisfy({ $0.allSatisfy(\.isNumber) }), let first = UInt16(ends[0]),
            let last = UInt16(ends[1]), first > 0, first <= last
        else { return nil }
        ports = first...last
    }

    /// Expands the ranges of `[LOCAL:]REMOTE` into one mapping per port; returns the text unchanged without a range.
    ///
    /// `9000-9009` listens on the same ports, `0:9000-9009` on free ports, `8000-8009:9000-9009` on the given ports.
    /// - Throws: `CLIError` for ranges of different lengths, or more than 256 ports.
    static func expand(_ text: String) throws(CLIError) -> [String] {
        var parts = text.split(separator: ":", omittingEmptySubsequences: false).map(String.init)
        guard !text.hasPrefix("unix:"), !text.contains(AbstractSocketName.adbPrefix),
            let remote = parts.popLast().flatMap({ PortRange($0) })
        else { return [text] }
        guard remote.ports.count <= limit else {
            throw .usage("\"\(SanitizedText(text))\" has more than \(limit) ports", try: "use several shorter ranges")
        }
        guard let local = parts.popLast() else { return remote.ports.map { "\($0)" } }
        if local == "0" { return remote.ports.map { (parts + ["0", "\($0)"]).joined(separator: ":") } }
        guard let range = PortRange(local), range.ports.count == remote.ports.count else {
            throw .usage(
                "\"\(SanitizedText(text))\" has different numbers of local ports and phone ports",
                try: "0:\(remote), \(remote) or \(remote):\(remote)"
            )
        }
        return zip(range.ports, remote.ports).map { (parts + ["\($0)", "\($1)"]).joined(separator: ":") }
    }
}

extension PortRange: CustomStringConvertible {
    var description: String { "\(ports.lowerBound)-\(ports.upperBound)" }
}
