import Model

/// A URI to which a browser takes an answer back to its client: https, or http on this browser's own machine.
///
/// Only plain characters are accepted, so that a browser reads the same host as this type. In particular a backslash
/// is refused, which browsers take for a slash, and a user name before the host.
struct RedirectURI: Hashable, Sendable {
    /// Maximum length in bytes.
    static let limit = 512
    private static let loopbackHosts: Set<Substring> = ["localhost", "127.0.0.1", "[::1]"]

    let text: String
    /// The scheme and the authority, as shown to people: `https://example.com`.
    let origin: String
    private let host: Substring
    /// The path and the query.
    private let rest: Substring
    private let isLoopback: Bool

    init(_ text: String) throws(OAuthError) {
        func refusal(_ reason: String) -> OAuthError { OAuthError(.invalidRedirectURI, "a redirect URI \(reason)") }
        guard (1...Self.limit).contains(text.utf8.count) else { throw refusal("has 1 to \(Self.limit) bytes") }
        let isSecure = text.hasPrefix("https://")
        guard isSecure || text.hasPrefix("http://") else { throw refusal("begins with https:// or http://") }
        guard text.utf8.allSatisfy(Self.isAllowed) else { throw refusal("has a character that is not allowed there") }
        let afterScheme = text.dropFirst(isSecure ? 8 : 7)
        let authority = afterScheme.prefix { $0 != "/" && $0 != "?" }
        guard let host = Self.host(of: authority) else { throw refusal("needs a plain host, without a user name") }
        let isLoopback = !isSecure && Self.loopbackHosts.contains(host)
        guard isSecure || isLoopback else { throw refusal("with http is for localhost, 127.0.0.1 or [::1] only") }
        self.text = text
        self.host = host
        self.isLoopback = isLoopback
        origin = String(text.prefix(text.count - afterScheme.count)) + authority
        rest = afterScheme.dropFirst(authority.count)
    }

    /// Returns whether a request may use the URI where this one is registered: the same text, or on loopback the same
    /// with any port, which native programs choose when they start (RFC 8252, section 7.3).
    func allows(_ other: RedirectURI) -> Bool {
        self == other || isLoopback && other.isLoopback && host == other.host && rest == other.rest
    }

    /// Returns the URI with further parameters in its query.
    func adding(_ parameters: [(name: String, value: String)]) -> String {
        parameters.reduce(into: text) { text, parameter in
            text += (text.contains("?") ? "&" : "?") + "\(parameter.name)=\(FormEncoding.encode(parameter.value))"
        }
    }

    /// Returns the host of an authority without its port; nil unless both are plain.
    private static func host(of authority: Substring) -> Substring? {
        let isLiteral = authority.hasPrefix("[")
        let colon = authority.firstIndex(of: ":") ?? authority.endIndex
        let bracket = authority.firstIndex(of: "]").map(authority.index(after:)) ?? authority.startIndex
        let host = authority[..<(isLiteral ? bracket : colon)]
        let port = authority[host.endIndex...]
        let isPlain =
            isLiteral
            ? host.dropFirst().dropLast().allSatisfy { $0.isHexDigit || $0 == ":" || $0 == "." }
            : host.utf8.allSatisfy { $0.isLetterOrDigit || $0 == UInt8(ascii: "-") || $0 == UInt8(ascii: ".") }
        guard !host.isEmpty, isPlain else { return nil }
        guard port.isEmpty || port.hasPrefix(":") && UInt16(port.dropFirst()).map({ ":\($0)" == port }) ?? false else {
            return nil
        }
        return host
    }

    private static func isAllowed(_ byte: UInt8) -> Bool {
        // The reserved and unreserved characters of RFC 3986, without "#", which begins a fragment.
        byte.isLetterOrDigit || "-._~:/?[]@!$&'()*+,;=%".utf8.contains(byte)
    }
}
