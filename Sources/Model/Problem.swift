/// An error of the HTTP API: RFC 9457, `application/problem+json`, with the extension members `code` and `hint`.
package struct Problem: Error, Hashable, Sendable, Codable {
    /// The machine-readable kind of the problem: the last part of `type`.
    package enum Code: String, Hashable, Sendable, Codable {
        case badRequest = "bad-request"
        case notFound = "not-found"
        case ambiguous
        case methodNotAllowed = "method-not-allowed"
        case conflict
        /// No token, or a token that is not accepted. The response does not say which.
        case unauthorized
        case forbidden
        /// The Host header has a name that is not the broker's, as in a DNS rebinding attack by a web page.
        case misdirected
        /// Another client has the lease (423 of RFC 4918).
        case leased
        case unsupportedMedia = "unsupported-media"
        /// The request is allowed, and needs the header Upgrade (426 of RFC 9110).
        case upgradeRequired = "upgrade-required"
        case slowDown = "slow-down"
        case tooLarge = "too-large"
        /// The request head is too large. The server closes the connection after this response.
        case headTooLarge = "head-too-large"
        /// The request head did not arrive in time. The server closes the connection after this response.
        case timeout
        case unavailable
        case limit
        case internalError = "internal-error"
    }

    /// `urn:patchbay:problem:<code>`.
    package let type: String
    package let title: String
    package let status: Int
    /// A sentence that says what happened to which object.
    package let detail: String
    package let code: Code
    /// The next action to try, often a command.
    package var hint: String?
    /// The reason why a target could not be dialed. Nil for every other problem.
    package let reason: DialError.Reason?

    /// A failed dial.
    package init(_ failure: DialError) {
        self.init(.unavailable, failure.description, reason: failure.reason)
    }

    package init(_ code: Code, _ detail: String, hint: String? = nil, reason: DialError.Reason? = nil) {
        type = "urn:patchbay:problem:\(code.rawValue)"
        title = code.title
        status = code.status
        self.detail = detail
        self.code = code
        self.hint = hint
        self.reason = reason
    }
}

extension Problem.Code {
    /// The HTTP status of the code. No other code maps problems to statuses.
    package var status: Int {
        switch self {
        case .badRequest: 400
        case .unauthorized: 401
        case .forbidden: 403
        case .notFound: 404
        case .methodNotAllowed: 405
        case .timeout: 408
        case .ambiguous, .conflict: 409
        case .tooLarge: 413
        case .unsupportedMedia: 415
        case .misdirected: 421
        case .leased: 423
        case .upgradeRequired: 426
        case .limit, .slowDown: 429
        case .headTooLarge: 431
        case .internalError: 500
        case .unavailable: 503
        }
    }

    fileprivate var title: String {
        switch self {
        case .badRequest: "Bad request"
        case .unauthorized: "Unauthorized"
        case .forbidden: "Forbidden"
        case .misdirected: "Misdirected request"
        case .unsupportedMedia: "Unsupported media type"
        case .upgradeRequired: "Upgrade required"
        case .slowDown: "Too many requests"
        case .leased: "Leased by another client"
        case .notFound: "Not found"
        case .methodNotAllowed: "Method not allowed"
        case .ambiguous: "Ambiguous name"
        case .conflict: "Conflict"
        case .tooLarge: "Request too large"
        case .headTooLarge: "Request head too large"
        case .timeout: "Request timeout"
        case .limit: "Limit reached"
        case .internalError: "Internal error"
        case .unavailable: "Temporarily unavailable"
        }
    }
}

extension Problem {
    /// The beginning of the hint for a user of this machine who is no owner and sent no token.
    package static let askHint = "patchbay ask requests access"
}
