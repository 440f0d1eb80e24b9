package import SystemIO

/// Decides from the first bytes of a connection whether a web page may have sent them.
///
/// It keeps positions and no bytes: each call gets everything that arrived, and examines only the bytes that are new. Once
/// it has decided, more bytes change nothing. Only HTTP/1 is looked at, and of it the first request; a request that can be
/// read in two ways is refused. Bytes that are not HTTP always pass.
package struct BrowserGuard: Hashable, Sendable {
    package enum Verdict: Hashable, Sendable {
        case passes
        case refused(Refusal)
        /// More bytes are needed.
        case undecided(RequestStage)
    }

    package enum Refusal: Hashable, Sendable {
        /// It has an Origin header, as every request of a page to another site has, and every WebSocket.
        case origin
        /// It is meant for another host: a name that was made to lead here (DNS rebinding), or none.
        case foreignHost
        /// The browser says that another site caused it.
        case crossSite
        /// It can be read in two ways.
        case ambiguous
        case tooLong
        case unfinished
    }

    /// A head may have this many bytes.
    package static let limit = 16 * 1_024

    private static let names = ["localhost", "127.0.0.1", "[::1]"]

    /// What the client connected to: a number that is its own name, and that no name server can give to another.
    private let address: SocketAddress?
    private var line = RequestLine()
    /// The reading of the header lines; nil while the request line is not whole.
    private var fields: Fields?

    /// How far the header lines were read. All positions count from the connection's first byte.
    private struct Fields: Hashable, Sendable {
        let target: Range<Int>
        let minor: UInt8
        /// Where the line begins that is not whole yet.
        var lineStart: Int
        /// How many bytes were searched for its end.
        var examined: Int
        var host: Range<Int>?
    }

    package init(address: SocketAddress?) {
        self.address = address?.unmapped.with(port: 0)
    }

    /// - Parameters:
    ///   - bytes: Everything that came, the bytes of earlier calls included; bytes beyond the limit are not looked at.
    ///   - isAll: No more will come.
    /// - Returns: `undecided` never when nothing more will come.
    package mutating func verdict(on bytes: UnsafeRawBufferPointer, isAll: Bool = false) -> Verdict {
        let bytes = UnsafeRawBufferPointer(rebasing: bytes.prefix(Self.limit))
        let verdict = judge(bytes)
        guard case .undecided(let stage) = verdict else { return verdict }
        // A word of any length may be another protocol's. A method and a path are a request's.
        if bytes.count == Self.limit { return stage == .begun || line.hasPath ? .refused(.tooLong) : .passes }
        if isAll { return stage == .begun ? .refused(.unfinished) : .passes }
        return verdict
    }

    private mutating func judge(_ bytes: UnsafeRawBufferPointer) -> Verdict {
        if fields == nil {
            switch line.read(bytes) {
            case .other: return .passes
            case .malformed: return .refused(.ambiguous)
            case .unfinished(let stage): return .undecided(stage)
            case .read(let target, let minor, let end):
                fields = Fields(target: target, minor: minor, lineStart: end, examined: end)
            }
        }
        return judgeFields(of: bytes)
    }

    /// Reads the header lines (RFC 9112, section 5), from where the last call stopped.
    private mutating func judgeFields(of bytes: UnsafeRawBufferPointer) -> Verdict {
        guard var fields else { return .undecided(.begun) }
        defer { self.fields = fields }
        while let end = bytes[fields.examined...].firstIndex(of: .lineFeed) {
            let line = bytes[fields.lineStart..<end]
            // A verdict ends the reading, and is the same when the line is read again.
            guard line.last == .carriageReturn else { return .refused(.ambiguous) }
            let content = line.dropLast()
            if content.isEmpty {
                let host = fields.host.map { Self.text(bytes[$0]) }
                return judge(host: host, Self.text(bytes[fields.target]), fields.minor)
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

    private func judge(host: String?, _ target: String, _ minor: UInt8) -> Verdict {
        if let host {
            guard isOwn(host) else { return .refused(.foreignHost) }
        } else if minor > 0 {
            return .refused(.foreignHost)
        }
        if target.hasPrefix("/") || target == "*" { return .passes }
        // The absolute form and CONNECT's name the host a second time, and count more (RFC 9112, section 3.2.2).
        let parts = target.split(separator: "/", maxSplits: 3, omittingEmptySubsequences: false)
        let isAbsolute = parts.count >= 3 && parts[0].hasSuffix(":") && parts[1].isEmpty
        let authority = String((isAbsolute ? parts[2] : target[...]).prefix { $0 != "?" && $0 != "#" })
        guard isOwn(authority) else { return .refused(.foreignHost) }
        return host == nil || host == authority ? .passes : .refused(.ambiguous)
    }

    /// Whether a host, with or without a port, is a name of this machine that nobody can lead elsewhere.
    private func isOwn(_ host: String) -> Bool {
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

    /// In lower case and without the blanks around it.
    private static func text(_ bytes: Slice<UnsafeRawBufferPointer>) -> String {
        let isBlank: (UInt8) -> Bool = { $0 == .space || $0 == .tab }
        let trimmed = bytes.drop(while: isBlank).reversed().drop(while: isBlank).reversed()
        return String(decoding: trimmed.map { (0x41...0x5A).contains($0) ? $0 + 0x20 : $0 }, as: UTF8.self)
    }
}

extension BrowserGuard.Refusal: CustomStringConvertible {
    package var description: String {
        let what =
            switch self {
            case .origin: "it has an Origin header, as requests of web pages have"
            case .foreignHost: "its Host is not localhost, 127.0.0.1 or [::1]"
            case .crossSite: "another web site caused it (Sec-Fetch-Site)"
            case .ambiguous: "it is not written strictly as HTTP/1.1 says, and could be read in two ways"
            case .tooLong: "its head is longer than \(BrowserGuard.limit) bytes"
            case .unfinished: "its head did not become whole in time"
            }
        return "an HTTP request was turned away before the target saw it: \(what); to let such requests in, open the "
            + "tunnel with --allow-browsers"
    }
}
