import HTTPTypes
import Model

/// What every request must be, before anybody looks who makes it: the rules that keep web pages out.
///
/// A page in a browser can send requests here, from any site, and after DNS rebinding under a name of its own; what it
/// cannot do is choose Host, Origin and Sec-Fetch-Site.
struct RequestValidator: Sendable {
    /// The port of this door; nil on a unix socket, where a name has none and any is right.
    let port: UInt16?
    /// The origins that are let in although they are a web page's, as they send themselves.
    let origins: Set<String>

    private static let names: Set<String> = ["localhost", "127.0.0.1", "[::1]"]

    /// - Throws: `Problem` with 400, 403, 405, 415 or 421.
    func check(_ request: HTTPRequest) throws(Problem) {
        try checkHost(request)
        // No answer to a preflight: a browser that gets none does not send what it asked for.
        if request.method == .options { throw Problem(.methodNotAllowed, "OPTIONS is not answered here") }
        try checkPage(request)
        try checkBody(request)
    }

    private func checkHost(_ request: HTTPRequest) throws(Problem) {
        // The first one is the authority; others stay among the fields.
        let hosts = [request.authority].compactMap { $0 } + Self.values(of: "Host", in: request)
        guard hosts.count == 1, let host = hosts.first else {
            throw Problem(.badRequest, "the request must have one Host header, and it has \(hosts.count)")
        }
        guard isOurs(host) else {
            throw Problem(
                .misdirected,
                "this broker is not called \"\(SanitizedText(host, limit: 80))\"",
                next: "use localhost, 127.0.0.1 or [::1]\(port.map { ", with the port \($0)" } ?? "")"
            )
        }
    }

    /// A name of ours, with no port or with ours; whatever a resolver makes of other names does not matter.
    func isOurs(_ host: String) -> Bool {
        let host = host.lowercased()
        if Self.names.contains(host) { return true }
        guard let colon = host.lastIndex(of: ":"), Self.names.contains(String(host[..<colon])) else { return false }
        let digits = host[host.index(after: colon)...]
        // As it is always written: "+7282" and "07282" are numbers too.
        guard let number = UInt16(digits), "\(number)" == digits, number > 0 else { return false }
        return port.map { $0 == number } ?? true
    }

    private func checkPage(_ request: HTTPRequest) throws(Problem) {
        let sent = Self.values(of: "Origin", in: request)
        guard sent.allSatisfy(origins.contains) else {
            throw Problem(
                .forbidden,
                "requests of web pages are refused; this one is of \"\(SanitizedText(sent.first ?? "", limit: 80))\"",
                next: "list the page's origin as allowed_origins in the table [api] of the configuration"
            )
        }
        let isListed = !sent.isEmpty
        guard isListed || Self.values(of: "Sec-Fetch-Site", in: request).allSatisfy({ $0 == "none" }) else {
            throw Problem(.forbidden, "requests of web pages are refused; this one says Sec-Fetch-Site")
        }
    }

    /// A form, or text, is what a page may send without asking first.
    private func checkBody(_ request: HTTPRequest) throws(Problem) {
        let codings = Self.values(of: "Transfer-Encoding", in: request)
        // Where such a body ends is a matter of opinion (RFC 9112, section 6.3).
        guard codings.isEmpty || codings == ["chunked"] else {
            throw Problem(.badRequest, "the only Transfer-Encoding taken here is chunked")
        }
        let hasBody =
            !codings.isEmpty || Self.values(of: "Content-Length", in: request).contains { $0 != "0" }
        guard hasBody else { return }
        let types = Self.values(of: "Content-Type", in: request)
        // Clients say chunked where they send nothing (SwiftNIO's for one); a route that takes a body looks again.
        if types.isEmpty, !codings.isEmpty { return }
        guard types.count == 1, Self.isJSON(types[0]) else {
            throw Problem(.unsupportedMedia, "the body must be JSON, with the header Content-Type: application/json")
        }
    }

    private static func isJSON(_ type: String) -> Bool {
        type.prefix { $0 != ";" }.filter { $0 != " " && $0 != "\t" }.lowercased() == "application/json"
    }

    static func values(of name: String, in request: HTTPRequest) -> [String] {
        HTTPField.Name(name).map { request.headerFields[values: $0] } ?? []
    }
}
