import Model
package import SystemIO

/// Decides from the first bytes of a connection if a web page may have sent them.
///
/// The guard stores positions and no bytes. Each call gets every byte received so far and examines the new ones only. A
/// decision is final: later bytes do not change it. The guard checks the first HTTP/1 request and rejects ambiguous
/// requests. Bytes that are not HTTP always pass.
package struct BrowserGuard: Hashable, Sendable {
    /// The guard's decision about a connection.
    package enum Decision: Hashable, Sendable {
        case passes
        case refused(Refusal)
        /// The decision needs more bytes.
        case undecided(RequestLineStage)
    }

    /// The reason why a request is rejected.
    package enum Refusal: Hashable, Sendable {
        /// An Origin header is present. Browsers send Origin with cross-site requests and with every WebSocket
        /// handshake.
        case origin
        /// The Host header is missing or names another host, which indicates DNS rebinding.
        case foreignHost
        /// The Sec-Fetch-Site header reports another site.
        case crossSite
        /// The request is ambiguous: two parsers could read two different requests.
        case ambiguous
        case tooLong
        case unfinished
    }

    /// The maximum size of a request head in bytes.
    package static let limit = 16 * 1_024

    private static let names = ["localhost", "127.0.0.1", "[::1]"]

    /// The address that the client connected to. As a numeric address, a name server cannot point it at another
    /// machine.
    private let address: SocketAddress?
    private var line = RequestLineParser()
    /// The state of the header parser; nil until the request line is complete.
    private var fields: Fields?

    /// The progress of the header parser. All positions count from the first byte of the connection.
    private struct Fields: Hashable, Sendable {
        let target: Range<Int>
        let minor: UInt8
        /// The start of the first incomplete line.
        var lineStart: Int
        /// The number of bytes already searched for the end of that line.
        var examined: Int
        var host: Range<Int>?
    }

    /// Creates a guard for a connection to `address`; without an address, only localhost, 127.0.0.1 and [::1] are local
    /// names.
    package init(address: SocketAddress?) {
        self.address = address?.unmapped.with(port: 0)
    }

    /// Evaluates the bytes received so far.
    ///
    /// - Parameters:
    ///   - bytes: Every byte received on the connection, including the bytes of earlier calls. Bytes beyond `limit` are
    ///     ignored.
    ///   - isComplete: True if the client will send no more bytes.
    /// - Returns: The decision; never `undecided` if `isComplete` is true.
    package mutating func evaluate(_ bytes: UnsafeRawBufferPointer, isComplete: Bool = false) -> Decision {
        let bytes = UnsafeRawBufferPointer(rebasing: bytes.prefix(Self.limit))
        let decision = evaluateRequest(bytes)
        guard case .undecided(let stage) = decision else { return decision }
        // A long word may belong to another protocol. A method with a path is a request.
        if bytes.count == Self.limit { return stage == .begun || line.hasPath ? .refused(.tooLong) : .passes }
        if isComplete { return stage == .begun ? .refused(.unfinished) : .passes }
        return decision
    }

    private mutating func evaluateRequest(_ bytes: UnsafeRawBufferPointer) -> Decision {
        if fields == nil {
            switch line.read(bytes) {
            case .other: return .passes
            case .malformed: return .refused(.ambiguous)
            case .unfinished(let stage): return .undecided(stage)
            case .read(let target, let minor, let end):
                fields = Fields(target: target, minor: minor, lineStart: end, examined: end)
            }
        }
        return evaluateFields(of: bytes)
    }

    /// Parses the header lines (RFC 9112, section 5) from the position at which the last call stopped.
    private mutating func evaluateFields(of bytes: UnsafeRawBufferPointer) -> Decision {
        guard var fields else { return .undecided(.begun) }
        defer { self.fields = fields }
        while let end = bytes[fields.examined...].firstIndex(of: .lineFeed) {
            let line = bytes[fields.lineStart..<end]
            // A decision stops the parser. The same line gives the same decision when it is parsed again.
            guard line.last == .carriageReturn else { return .refused(.ambiguous) }
            let content = line.dropLast()
            if content.isEmpty {
                let host = fields.host.map { Self.text(bytes[$0]) }
                return evaluate(host: host, target: Self.text(bytes[fields.target]), minorVersion: fields.minor)
            }
            guard content.allSatisfy({ $0 >= 0x20 && $0 != 0x7F || $0 == .tab }),
                let colon = content.firstIndex(of: UInt8(ascii: ":")), colon > content.startIndex,
                content[..<colon].allSatisfy(\.isTokenByte)
            else { return .refused(.ambiguous) }
            let value = content[(colon + 1)...]
            switch Self.text(content[..<colon]) {
            case "origin": return .refused(.origin)
            case "sec-fetch-site" where !["none", "same-origin"].contains(Self.text(value)):
                return .refused(.crossSite)
            case "host" where fields.host != nil: return .refused(.ambiguous)
            case "host": fields.host = value.startIndex..<value.endIndex
            default: break
            }
            fields.lineStart = end + 1
            fields.examined = end + 1
        }
        fields.examined = bytes.count
        return .undecided(.begun)
    }

    /// Evaluates the host names of a complete head.
    private func evaluate(host: String?, target: String, minorVersion: UInt8) -> Decision {
        if let host {
            guard isLocalName(host) else { return .refused(.foreignHost) }
        } else if minorVersion > 0 {
            return .refused(.foreignHost)
        }
        if target.hasPrefix("/") || target == "*" { return .passes }
        // The absolute form and CONNECT name the host again and override the Host header (RFC 9112, section 3.2.2).
        let parts = target.split(separator: "/", maxSplits: 3, omittingEmptySubsequences: false)
        let isAbsolute = parts.count >= 3 && parts[0].hasSuffix(":") && parts[1].isEmpty
        let authority = String((isAbsolute ? parts[2] : target[...]).prefix { $0 != "?" && $0 != "#" })
        guard isLocalName(authority) else { return .refused(.foreignHost) }
        return host == nil || host == authority ? .passes : .refused(.ambiguous)
    }

    /// True if a host, with or without a port, is a local name that DNS cannot redirect.
    private func isLocalName(_ host: String) -> Bool {
        var name = host[...]
        if let colon = host.lastIndex(of: ":"), !host[colon...].contains("]") {
            let port = host[host.index(after: colon)...]
            guard port.utf8.allSatisfy({ (0x30...0x39).contains($0) }), port.isEmpty || UInt16(port) != nil else {
                return false
            }
            name = host[..<colon]
        }
        if Self.names.contains(String(name)) { return true }
        guard let address else { return false }
        switch address {
        case .ipv4: return SocketAddress(numeric: name, port: 0) == address
        case .ipv6(let number, _, _):
            guard name.hasPrefix("["), name.hasSuffix("]"),
                case .ipv6(number, _, _)? = SocketAddress(numeric: name.dropFirst().dropLast(), port: 0)
            else { return false }
            return true
        case .unix: return false
        }
    }

    /// The bytes as lower-case text without surrounding spaces and tabs.
    private static func text(_ bytes: Slice<UnsafeRawBufferPointer>) -> String {
        let isBlank: (UInt8) -> Bool = { $0 == .space || $0 == .tab }
        let trimmed = bytes.drop(while: isBlank).reversed().drop(while: isBlank).reversed()
        return String(decoding: trimmed.map { (0x41...0x5A).contains($0) ? $0 + 0x20 : $0 }, as: UTF8.self)
    }
}

extension BrowserGuard.Refusal: CustomStringConvertible {
    package var description: String {
        let reason =
            switch self {
            case .origin: "it has an Origin header, which browsers add to requests of web pages"
            case .foreignHost: "its Host is not localhost, 127.0.0.1 or [::1]"
            case .crossSite: "a web page of another site sent it (Sec-Fetch-Site)"
            case .ambiguous: "it violates the syntax of HTTP/1.1 and is ambiguous"
            case .tooLong: "its head is longer than \(BrowserGuard.limit) bytes"
            case .unfinished: "its head was incomplete at the timeout"
            }
        return "an HTTP request was rejected before it reached the target: \(reason); to allow such requests, open the "
            + "tunnel with --allow-browsers"
    }
}
