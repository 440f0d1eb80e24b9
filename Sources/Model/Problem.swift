/// An error as the HTTP API says it: RFC 9457, `application/problem+json`, with two members of our own.
package struct Problem: Error, Hashable, Sendable, Codable {
    /// What kind of problem, for programs: the last part of `type`.
    package enum Code: String, Hashable, Sendable, Codable {
        case badRequest = "bad-request"
        case notFound = "not-found"
        case ambiguous
        case methodNotAllowed = "method-not-allowed"
        case conflict
        case forbidden
        case tooLarge = "too-large"
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
        case .forbidden: 403
        case .notFound: 404
        case .methodNotAllowed: 405
        case .ambiguous, .conflict: 409
        case .tooLarge: 413
        case .limit: 429
        case .internalError: 500
        case .unavailable: 503
        }
    }

    fileprivate var title: String {
        switch self {
        case .badRequest: "The request could not be understood"
        case .forbidden: "Not permitted"
        case .notFound: "No such thing"
        case .methodNotAllowed: "Not something this address does"
        case .ambiguous: "More than one thing fits"
        case .conflict: "Something is in the way"
        case .tooLarge: "The request is too large"
        case .limit: "A limit is reached"
        case .internalError: "Patchbay failed"
        case .unavailable: "Not there right now"
        }
    }
}
