import AccessControl
import Model

/// A problem with the members of an OAuth error (RFC 6749, section 5.2; RFC 7591, section 3.2.2).
///
/// Without `api.oauth`, MCP clients still look for an authorization server after status 401, and try to register. They
/// show `error` and `error_description` of the refusal to their users, and hide any other text.
struct OAuthProblem: Encodable {
    private enum CodingKeys: String, CodingKey {
        case error
        case description = "error_description"
    }

    enum Code: String, Encodable {
        /// RFC 6750, section 3.1.
        case invalidToken = "invalid_token"
        case insufficientScope = "insufficient_scope"
        /// Clients repeat a registration after some other codes.
        case accessDenied = "access_denied"
    }

    private let problem: Problem
    private let error: Code

    init(_ problem: Problem, error: Code? = nil) {
        self.problem = problem
        self.error = error ?? (problem.code == .unauthorized ? .invalidToken : .accessDenied)
    }

    /// The answer to a request for the metadata of an authorization server, or for a registration.
    static let unsupported = Problem(
        .notFound,
        "this broker has no OAuth: a client sends its token in the header Authorization: Bearer",
        hint: AccessError.tokenHint
    )

    /// Returns whether OAuth clients send requests to a path and show its errors.
    static func isAsked(at path: String) -> Bool { path == "/register" || path.contains("/.well-known/") }

    /// Returns whether a path is one of OAuth alone (RFC 8414, section 3; RFC 9728, section 3; RFC 7591, section 3).
    static func isOfOAuth(_ path: String) -> Bool {
        path == "/register" || ["oauth-", "openid-"].contains { path.contains("/.well-known/\($0)") }
    }

    func encode(to encoder: any Encoder) throws {
        try problem.encode(to: encoder)
        var container = encoder.container(keyedBy: CodingKeys.self)
        try container.encode(error, forKey: .error)
        let description = [problem.detail, problem.hint].compactMap { $0 }.joined(separator: "; ")
        try container.encode(description, forKey: .description)
    }
}
