package import Sockets

/// Decides from the first bytes of a connection whether a web page may have sent them.
///
/// It keeps nothing: it is asked with everything that came so far, and once it has decided, more bytes change nothing. Only
/// HTTP/1 is looked at, and of it the first request; what can be read in two ways is refused.
package struct BrowserGuard: Hashable, Sendable {
    package enum Verdict: Hashable, Sendable {
        case passes
        case refused(Refusal)
        /// More bytes are needed.
        case undecided(RequestLine.Stage)
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

    package init(address: SocketAddress?) {
        self.address = address?.unmapped.with(port: 0)
    }

    /// - Parameters:
    ///   - bytes: Everything that came; what is beyond the limit is not looked at.
    ///   - isAll: No more will come.
    /// - Returns: `undecided` never when nothing more will come.
    package func verdict(on bytes: UnsafeRawBufferPointer, isAll: Bool = false) -> Verdict {
        let bytes = UnsafeRawBufferPointer(rebasing: bytes.prefix(Self.limit))
        let verdict = judge(bytes)
        guard case .undecided(let stage) = verdict else { return verdict }
        if bytes.count == Self.limit { return .refused(.tooLong) }
        if isAll { return stage == .begun ? .refused(.unfinished) : .passes }
        return verdict
    }

    private func judge(_ bytes: UnsafeRawBufferPointer) -> Verdict {
        switch RequestLine(bytes) {
        case .other: return .passes
        case .malformed: return .refused(.ambiguous)
        case .unfinished(let stage): return .undecided(stage)
        case .read(let target, let minor, let end): return judge(bytes[end...], target, minor)
        }
    }

    /// Reads the header lines (RFC 9112, section 5).
    private func judge(
        _ lines: Slice<UnsafeRawBufferPointer>,
        _ target: UnsafeRawBufferPointer,
        _ minor: UInt8
    ) -> Verdict {
        var rest = lines
        var host: String?
        while let end = rest.firstIndex(of: .lineFeed) {
            let line = rest[rest.startIndex..<end]
            rest = rest[(end + 1)...]
            guard line.last == .carriageReturn else { return .refused(.ambiguous) }
            let content = line.dropLast()
            if content.isEmpty { return judge(host: host, target, minor) }
            guard content.allSatisfy({ $0 >= 0x20 && $0 != 0x7F || $0 == .tab }),
                let colon = content.firstIndex(of: UInt8(ascii: ":")), colon > content.startIndex,
                content[..<colon].allSatisfy(\.isTokenByte)
            else { return .refused(.ambiguous) }
            let value = Self.text(content[(colon + 1)...])
            switch Self.text(content[..<colon]) {
            case "origin": return .refused(.origin)
            case "sec-fetch-site" where value != "none" && value != "same-origin": return .refused(.crossSite)
            case "host" where host != nil: return .refused(.ambiguous)
            case "host": host = value
            default: break
            }
        }
        return .undecided(.begun)
    }

    private func judge(host: String?, _ target: UnsafeRawBufferPointer, _ minor: UInt8) -> Verdict {
        if let host {
            guard isOwn(host) else { return .refused(.foreignHost) }
        } else if minor > 0 {
            return .refused(.foreignHost)
        }
        let target = Self.text(target[...])
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
