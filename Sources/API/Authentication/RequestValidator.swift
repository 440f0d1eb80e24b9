import HTTPTypes
import Model

/// Validates the head of every request before authentication. The rules keep requests of web pages out.
///
/// A page in a browser can send requests to this server from any site. After DNS rebinding, the page can even use a
/// host name of its own. A page cannot choose the headers Host, Origin and Sec-Fetch-Site.
struct RequestValidator: Sendable {
    /// The values that a Host header may have.
    enum HostHeaderRule: Sendable {
        /// A loopback name, with any port or this one.
        case loopback(port: UInt16?)
        /// Any name, for the remote listener. A browser rejects its certificate for a name that the person did not accept.
        case any

        /// The port of a TCP listener on loopback.
        fileprivate var port: UInt16? { if case .loopback(let port) = self { port } else { nil } }
    }

    let hostHeaderRule: HostHeaderRule
    /// The allowed web origins, spelled as browsers send them.
    let allowedOrigins: Set<String>
    /// True for a listener that pages may use: it answers the preflights of allowed origins.
    var answersPreflights = false
    /// The scheme of the listener's own page, the dashboard; nil for a listener without the page.
    var pageScheme: String?
    /// True for a listener with OAuth: any site may lead a browser to the page of the consent, and clients send forms.
    var hasOAuth = false

    private static let loopbackNames: Set<String> = ["localhost", "127.0.0.1", "[::1]"]

    /// Checks all rules.
    ///
    /// - Throws: `Problem` with 400, 403, 405, 415 or 421.
    func validate(_ request: HTTPRequest) throws(Problem) {
        try validateHost(request)
        // Any other preflight is rejected; the browser then does not send the actual request.
        if request.method == .options, !isAllowedPreflight(request) {
            throw Problem(.methodNotAllowed, "OPTIONS is not supported")
        }
        try validateOrigin(request)
        try validateBody(request)
    }

    /// Returns whether a browser asks if a page of an allowed origin may send a request (WHATWG Fetch, section 3.3.2).
    private func isAllowedPreflight(_ request: HTTPRequest) -> Bool {
        let origins = Self.values(of: "Origin", in: request)
        return answersPreflights && origins.count == 1 && allowedOrigins.contains(origins[0])
            && request.headerFields[.accessControlRequestMethod] != nil
    }

    private func validateHost(_ request: HTTPRequest) throws(Problem) {
        // The first Host header is the authority; further ones stay among the fields.
        let hosts = [request.authority].compactMap { $0 } + Self.values(of: "Host", in: request)
        guard hosts.count == 1, let host = hosts.first else {
            throw Problem(.badRequest, "the request must have exactly one Host header, not \(hosts.count)")
        }
        guard case .loopback(let port) = hostHeaderRule, !Self.isLoopback(host, port: port) else { return }
        throw Problem(
            .misdirected,
            "this broker does not serve the host \"\(SanitizedText(host, limit: 80))\"",
            hint: "use localhost, 127.0.0.1 or [::1]\(port.map { ", with the port \($0)" } ?? "")"
        )
    }

    /// Returns whether the host is a loopback name, without a port or with the port of the listener. Other names are
    /// rejected, whatever address they resolve to. A nil port means a Unix socket, where every port is accepted.
    static func isLoopback(_ host: String, port: UInt16?) -> Bool {
        let host = host.lowercased()
        if loopbackNames.contains(host) { return true }
        guard let colon = host.lastIndex(of: ":"), loopbackNames.contains(String(host[..<colon])) else {
            return false
        }
        let digits = host[host.index(after: colon)...]
        // Only the canonical form is accepted: "+7282" and "07282" are numbers, too.
        guard let number = UInt16(digits), "\(number)" == digits, number > 0 else { return false }
        return port.map { $0 == number } ?? true
    }

    private func validateOrigin(_ request: HTTPRequest) throws(Problem) {
        let origins = Self.values(of: "Origin", in: request)
        let foreign = origins.filter { !isOwnOrigin($0, of: request) }
        guard foreign.allSatisfy(allowedOrigins.contains) else {
            throw Problem(
                .forbidden,
                "requests of web pages are rejected; this one has the origin \"\(SanitizedText(origins.first ?? "", limit: 80))\"",
                hint: "list the page's origin as allowed_origins in the table [api] of the configuration"
            )
        }
        if !foreign.isEmpty { return }
        // `none` is a request of the person, such as a typed address. Another port of this host is `same-site`.
        let sites = Self.values(of: "Sec-Fetch-Site", in: request)
        let isOwn = !origins.isEmpty || pageScheme != nil && namesPort(request)
        guard sites.allSatisfy({ $0 == "none" || isOwn && $0 == "same-origin" }) || opensConsent(request) else {
            throw Problem(.forbidden, "requests of web pages are rejected; this one has the header Sec-Fetch-Site")
        }
    }

    /// Returns whether a browser opens the page of the consent in a window, not in a frame. The page does nothing by itself.
    private func opensConsent(_ request: HTTPRequest) -> Bool {
        hasOAuth && request.method == .get && Self.path(of: request) == "/oauth/authorize"
            && Self.values(of: "Sec-Fetch-Mode", in: request) == ["navigate"]
            && Self.values(of: "Sec-Fetch-Dest", in: request) == ["document"]
    }

    /// Returns whether a request may have a form as its body (RFC 6749, appendix B). It gives nothing without a secret.
    private func takesForm(_ request: HTTPRequest) -> Bool {
        hasOAuth && request.method == .post
            && ["/oauth/token", "/token", "/oauth/revoke"].contains(Self.path(of: request))
    }

    static func path(of request: HTTPRequest) -> Substring { (request.path ?? "").prefix { $0 != "?" } }

    /// Returns whether an origin is the listener's own one, which MCP clients send too. It is foreign to no one: a page can
    /// only have it if the broker itself served the page.
    private func isOwnOrigin(_ origin: String, of request: HTTPRequest) -> Bool {
        guard let scheme = pageScheme ?? (hostHeaderRule.port == nil ? nil : "http"), let host = request.authority
        else {
            return false
        }
        return namesPort(request) && origin == "\(scheme)://\(host.lowercased())"
    }

    /// Returns whether the Host header, which has been validated, names the port of the listener. Without the port, a page
    /// of port 80 would have the same origin.
    private func namesPort(_ request: HTTPRequest) -> Bool {
        guard case .loopback(let port) = hostHeaderRule else { return true }
        guard let port, let host = request.authority else { return false }
        return port == 80 || host.hasSuffix(":\(port)")
    }

    /// Requires JSON, because a page can send forms and plain text without a preflight.
    private func validateBody(_ request: HTTPRequest) throws(Problem) {
        let codings = Self.values(of: "Transfer-Encoding", in: request)
        // Implementations disagree about the end of such a body (RFC 9112, section 6.3).
        guard codings.isEmpty || codings == ["chunked"] else {
            throw Problem(.badRequest, "the only supported Transfer-Encoding is chunked")
        }
        let hasBody =
            !codings.isEmpty || Self.values(of: "Content-Length", in: request).contains { $0 != "0" }
        guard hasBody else { return }
        let types = Self.values(of: "Content-Type", in: request)
        // Some clients send `chunked` without a body, for example SwiftNIO. Routes with a body check the type again.
        if types.isEmpty, !codings.isEmpty { return }
        let form = "application/x-www-form-urlencoded"
        guard types.count == 1,
            Self.isMedia("application/json", types[0]) || takesForm(request) && Self.isMedia(form, types[0])
        else {
            throw Problem(.unsupportedMedia, "the body must be JSON, with the header Content-Type: application/json")
        }
    }

    private static func isMedia(_ media: String, _ type: String) -> Bool {
        type.prefix { $0 != ";" }.filter { $0 != " " && $0 != "\t" }.lowercased() == media
    }

    static func values(of name: String, in request: HTTPRequest) -> [String] {
        HTTPField.Name(name).map { request.headerFields[values: $0] } ?? []
    }
}
