/// An error as the HTTP API says it: RFC 9457, `application/problem+json`, with two members of our own.
package struct Problem: Error, Hashable, Sendable, Codable {
    /// What kind of problem, for programs: the last part of `type`.
    package enum Code: String, Hashable, Sendable, Codable {
        case badRequest = "bad-request"
        case notFound = "not-found"
        case ambiguous
        case methodNotAllowed = "method-not-allowed"
        case conflict
        /// No token, or none that is accepted; why not is not said.
        case unauthorized
        case forbidden
        /// Sent to a name that is not ours, as a web page does that has another name point here.
        case misdirected
        case unsupportedMedia = "unsupported-media"
        case slowDown = "slow-down"
        case tooLarge = "too-large"
        /// The head alone is; the connection ends with this answer.
        case headTooLarge = "head-too-large"
        /// The head did not come in time; the connection ends with this answer.
        case timeout
        case unavailable
        case limit
        case internalError = "internal-error"
    }

    /// `urn:patchbay:problem:<code>`.
    package let type: String
    package let title: String
    package let status: Int
    /// What happened to which thing.
    package let detail: String
    package let code: Code
    /// The next thing to try, often a command.
    package let next: String?

    package init(_ code: Code, _ detail: String, next: String? = nil) {
        type = "urn:patchbay:problem:\(code.rawValue)"
        title = code.title
        status = code.status
        self.detail = detail
        self.code = code
        self.next = next
    }
}

extension Problem.Code {
    /// The HTTP status; the only place where the two meet.
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
        case .limit, .slowDown: 429
        case .headTooLarge: 431
        case .internalError: 500
        case .unavailable: 503
        }
    }

    fileprivate var title: String {
        switch self {
        case .badRequest: "The request could not be understood"
        case .unauthorized: "Not let in"
        case .forbidden: "Not permitted"
        case .misdirected: "Not the name of this broker"
        case .unsupportedMedia: "Not JSON"
        case .slowDown: "Asked too often"
        case .notFound: "No such thing"
        case .methodNotAllowed: "Not something this address does"
        case .ambiguous: "More than one thing fits"
        case .conflict: "Something is in the way"
        case .tooLarge: "The request is too large"
        case .headTooLarge: "The head of the request is too large"
        case .timeout: "The request did not come in time"
        case .limit: "A limit is reached"
        case .internalError: "Patchbay failed"
        case .unavailable: "Not there right now"
        }
    }
}
