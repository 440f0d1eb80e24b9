/// A refusal of OAuth, which its client shows (RFC 6749, sections 4.1.2.1 and 5.2; RFC 7591, section 3.2.2).
package struct OAuthError: Error, Hashable, Sendable {
    package enum Code: String, Hashable, Sendable {
        case invalidRequest = "invalid_request"
        case invalidClient = "invalid_client"
        case invalidGrant = "invalid_grant"
        /// RFC 8707, section 2.
        case invalidTarget = "invalid_target"
        case invalidClientMetadata = "invalid_client_metadata"
        case invalidRedirectURI = "invalid_redirect_uri"
        case unsupportedResponseType = "unsupported_response_type"
        case unsupportedGrantType = "unsupported_grant_type"
        case accessDenied = "access_denied"
    }

    package let code: Code
    /// A sentence for the person, in printable ASCII without quotes and backslashes (RFC 6749, section 5.2).
    package let description: String

    package init(_ code: Code, _ description: String) {
        self.code = code
        self.description = description
    }
}
