import Model

/// A URI to which a browser takes an answer back to its client: https, http on this browser's own machine, or the private
/// scheme of a program there (RFC 8252, section 7.1).
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
        guard text.utf8.allSatisfy(Self.isAllowed) else { throw refusal("has a character that is not allowed there") }
        let scheme = text.prefix { $0 != ":" }
        let afterScheme = text.dropFirst(scheme.count + 1)
        let hasAuthority = afterScheme.hasPrefix("//")
        let authority = hasAuthority ? afterScheme.dropFirst(2).prefix { $0 != "/" && $0 != "?" } : ""
        let isPrivate = PrivateScheme.isOne(scheme)
        guard isPrivate || scheme == "https" || scheme == "http" else {
            throw refusal("begins with https://, http:// or the private scheme of a program")
        }
        // RFC 8252 writes `com.example.app:/callback`, with a name that its program owns.
        let isBare = isPrivate && scheme.contains(".") && afterScheme.hasPrefix("/") && !hasAuthority
        guard let host = isBare ? "" : Self.host(of: authority) else {
            throw refusal("needs a plain host, without a user name")
        }
        isLoopback = scheme == "http" && Self.loopbackHosts.contains(host)
        guard scheme != "http" || isLoopback else {
            throw refusal("with http is for localhost, 127.0.0.1 or [::1] only")
        }
        self.text = text
        self.host = host
        origin = "\(scheme):" + (hasAuthority ? "//\(authority)" : "")
        rest = afterScheme.dropFirst(hasAuthority ? authority.count + 2 : 0)
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

/// A scheme that a program on the browser's machine has registered for itself, such as `cursor` or `com.example.app`.
private enum PrivateScheme {
    /// Schemes that a browser or a desktop handles itself, so they are no program's own.
    private static let handled: Set<Substring> = [
        "about", "afp", "apt", "bitcoin", "blob", "cid", "content", "data", "dav", "davs", "dns", "facetime", "feed",
        "file", "filesystem", "ftp", "ftps", "geo", "git", "gopher", "help", "http", "https", "imap", "intent", "irc",
        "ircs", "itms", "jar", "javascript", "ldap", "ldaps", "livescript", "magnet", "mailto", "market", "mid", "mms",
        "mocha", "nfs", "nntp", "news", "pop", "res", "resource", "rtsp", "sftp", "shell", "shortcuts", "sip", "sips",
        "sms", "smb", "ssh", "svn", "tel", "telnet", "urn", "vbscript", "view-source", "vnc", "webcal", "ws", "wss",
        "wyciwyg", "xmpp",
    ]
    private static let handledPrefixes = ["chrome", "edge", "help-", "microsoft", "moz", "ms-", "search", "web+", "x-"]

    static func isOne(_ scheme: Substring) -> Bool {
        let isPlain = scheme.utf8.allSatisfy {
            (UInt8(ascii: "a")...UInt8(ascii: "z")).contains($0) || "0123456789+-.".utf8.contains($0)
        }
        return isPlain && scheme.first?.isLetter ?? false && !handled.contains(scheme)
            && !handledPrefixes.contains(where: scheme.hasPrefix)
    }
}
