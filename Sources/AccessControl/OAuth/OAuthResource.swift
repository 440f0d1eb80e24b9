import Model

/// An MCP server of this broker, as OAuth names it (RFC 8707, section 2): the issuer and a path.
struct OAuthResource: Hashable, Sendable {
    let issuer: String
    let path: String
    /// The endpoints that the server serves.
    let selector: Selector

    var text: String { issuer + path }

    /// - Throws: `OAuthError` with `invalid_target`, unless the text is an MCP server at this issuer.
    init(_ text: String, of issuer: String) throws(OAuthError) {
        // Scheme and host have no case (RFC 3986, section 3.2.2); the issuer is in small letters.
        guard text.count >= issuer.count, text.prefix(issuer.count).lowercased() == issuer,
            let selector = Self.selector(of: text.dropFirst(issuer.count))
        else {
            throw OAuthError(
                .invalidTarget,
                "the request needs the parameter resource, which names an MCP server at \(issuer), such as \(issuer)/mcp"
            )
        }
        self.issuer = issuer
        path = String(text.dropFirst(issuer.count))
        self.selector = selector
    }

    /// Returns whether a token request names this resource, or none (RFC 8707, section 2.2).
    func isNamed(by text: String?) -> Bool {
        guard let text else { return true }
        return (try? OAuthResource(text, of: issuer)) == self
    }

    private static func selector(of path: Substring) -> Selector? {
        let parts = path.split(separator: "/", omittingEmptySubsequences: false)
        return switch (parts.count, path) {
        case (_, "/mcp"), (_, "/all/mcp"): .all
        case (4, _) where parts[1] == "e" && parts[3] == "mcp" && parts[0].isEmpty:
            EndpointID(parts[2]).map { .endpoints([$0]) }
        default: nil
        }
    }
}
