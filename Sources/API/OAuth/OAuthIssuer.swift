import HTTPTypes

/// The address under which a client knows this broker: the issuer of OAuth (RFC 8414, section 2).
///
/// A broker has several addresses, and behind a proxy one that it does not know. So the issuer is what the client used:
/// the scheme of the listener, and the Host header that `RequestValidator` has accepted. A client that sends another host
/// gets only its own answer wrong.
struct OAuthIssuer: Hashable, Sendable {
    let text: String

    /// - Parameters:
    ///   - request: The request, with a valid Host header.
    ///   - scheme: The scheme of the listener; nil for a listener without OAuth.
    init?(of request: HTTPRequest, scheme: String?) {
        guard let scheme, let host = request.authority?.lowercased(), Self.isPlain(host) else { return nil }
        text = "\(scheme)://\(host)"
    }

    /// Returns whether a host may be repeated in a header and in a URL: a name or an address, perhaps with a port.
    private static func isPlain(_ host: String) -> Bool {
        guard let match = host.wholeMatch(of: #/(?:[a-z0-9.-]+|\[[0-9a-f:.]+\])(?::([1-9][0-9]{0,4}))?/#) else {
            return false
        }
        return match.1.map { UInt16($0) != nil } ?? true
    }

    /// The path of the metadata of an MCP server (RFC 9728, section 3.1).
    static func metadataPath(of resource: String) -> String { "/.well-known/oauth-protected-resource\(resource)" }

    /// Returns whether a path is that of an MCP server.
    static func isResource(_ path: String) -> Bool {
        path == "/mcp" || path == "/all/mcp" || path.hasPrefix("/e/") && path.hasSuffix("/mcp")
    }

    /// Returns the value of WWW-Authenticate that tells a client where to ask for access (RFC 9728, section 5.1).
    ///
    /// - Parameters:
    ///   - path: The path of an MCP server, as the client sent it.
    ///   - error: What is wrong with the token that the client sent (RFC 6750, section 3.1).
    ///   - scopes: The scopes that the client shall ask for.
    /// - Returns: The challenge.
    func challenge(at path: String, error: OAuthProblem.Code?, scopes: [String]) -> String {
        // A path of the route table has no quotes, unless a client has sent them in place of an ID.
        let resource = path.utf8.allSatisfy { $0 != UInt8(ascii: "\"") && $0 != UInt8(ascii: "\\") } ? path : ""
        let error = error.map { "error=\"\($0.rawValue)\", " } ?? ""
        return "Bearer \(error)resource_metadata=\"\(text)\(Self.metadataPath(of: resource))\", "
            + "scope=\"\(scopes.joined(separator: " "))\""
    }
}
