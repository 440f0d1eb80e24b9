package import FoundationEssentials

/// A one-time code for the sign-in in a browser: the response to `POST /v1/dashboard/codes`.
package struct DashboardCode: Hashable, Sendable, Codable {
    package let schema: Int
    /// The code, a secret.
    package let code: String
    /// The address of the page with the code in its fragment, which a browser never sends.
    package let url: String
    package let expiresAt: Date

    package init(code: String, url: String, expiresAt: Date) {
        schema = 1
        self.code = code
        self.url = url
        self.expiresAt = expiresAt
    }
}

/// The exchange of a code for a session: the body of `POST /v1/dashboard/sessions`.
package struct DashboardSessionSpec: Hashable, Sendable, Codable {
    package let code: String
}

/// The session of an owner's browser: the response to `POST /v1/dashboard/sessions`. No other response has the token.
package struct DashboardSession: Hashable, Sendable, Codable {
    package let schema: Int
    /// The secret token `pbg_…`, which counts only on loopback connections of the same user.
    package let token: String
    package let grant: Grant

    package init(token: String, grant: Grant) {
        schema = 1
        self.token = token
        self.grant = grant
    }
}
