package import AccessControl
package import Model

/// The reason why an app could not be called, or why one attempt failed.
package enum AppError: Error, Hashable, Sendable {
    /// The problem with the app's session token.
    package enum TokenProblem: Hashable, Sendable {
        /// The app requires a token and Patchbay has none.
        case missing
        /// The app rejected the stored token, because the app was restarted.
        case rejected
        /// The stored token belongs to an earlier launch.
        case outdated
    }

    /// No byte of the request has reached the app.
    case unreachable(DialError)
    /// No route of the endpoint is approved, or the app has moved to a route that is not approved.
    case notApproved
    /// An owner has denied the addresses of the endpoint.
    case denied
    /// Another app than the expected one answered on an approved route.
    case mismatch(Route, found: SanitizedText)
    case tokenRequired(TokenProblem)
    /// The principal's grant does not include the scope on this endpoint.
    case forbidden(Scope)
    /// The principal's grant is limited to certain tools, and this tool or method is not one of them.
    case toolNotAllowed(String, limit: ToolFilter)
    /// The tool's schema does not allow the arguments. The text is a clause about the first wrong one.
    case invalidArguments(tool: String, problem: String)
    /// The server does not speak MCP.
    case notMCP
    /// The limit of concurrent calls is reached.
    case busy
    /// Nothing was delivered, because the server completed no handshake within this time. A profile knows the usual
    /// cause.
    case noHandshake(seconds: Int, cause: String? = nil)
    /// Nothing was delivered, because a permission changed after the lookup.
    case permissionChanged
    /// The call was cancelled, because an owner removed the endpoint or revoked its approval.
    case accessEnded
    /// Nothing was delivered, because another client has the lease and the request may change the app.
    case leased(LeaseConflict)
    /// Nothing was delivered, because the lease that the call asked for is not possible.
    case leaseRefused(Problem)
    /// The request was delivered and the app was silent for this long.
    case timedOut(seconds: Int, cause: String? = nil)
    /// The request was delivered and the stream ended before the response.
    case responseLost
    /// The broker of another host refused the call, or was not reached. Nothing was delivered.
    case refused(by: HostName, Problem)
    /// The response cannot be used. The text continues the sentence "it answers with".
    case invalidResponse(String)
}

extension AppError {
    /// Converts an error of a request to the error for the principal.
    init(_ error: any Error) {
        self =
            switch error {
            case let failure as AppError: failure
            case let failure as ExchangeError: failure.appError
            case let error as RPCError:
                .invalidResponse("error \(error.code): \(SanitizedText(error.message, limit: 500))")
            // Cancelled: no client receives this error.
            default: .responseLost
            }
    }

    /// The machine-readable code, also used in the audit log.
    package var code: String {
        switch self {
        case .unreachable: "unavailable"
        case .notApproved, .denied: "not-approved"
        case .mismatch: "changed"
        case .tokenRequired: "token-required"
        case .forbidden, .toolNotAllowed: "not-permitted"
        case .invalidArguments: "invalid-arguments"
        case .notMCP: "not-mcp"
        case .busy: "busy"
        case .noHandshake: "no-handshake"
        case .permissionChanged: "permission-changed"
        case .accessEnded: "access-ended"
        case .leased: "leased"
        case .leaseRefused: "lease-refused"
        case .timedOut: "timeout"
        case .responseLost: "response-lost"
        case .refused(_, let problem): problem.code.rawValue
        case .invalidResponse: "invalid-response"
        }
    }

    /// Indicates whether the app received the call and may have executed it.
    package var isDelivered: Bool {
        switch self {
        case .timedOut, .responseLost, .invalidResponse, .accessEnded: true
        case .unreachable, .notApproved, .denied, .mismatch, .tokenRequired, .forbidden, .toolNotAllowed,
            .invalidArguments,
            .notMCP, .busy, .noHandshake, .permissionChanged, .leased, .leaseRefused, .refused:
            false
        }
    }

    /// Returns the error with the caller's own time limit, which began before the request was sent.
    func reporting(limit: Duration) -> AppError {
        switch self {
        case .timedOut(_, let cause): .timedOut(seconds: limit.roundedSeconds, cause: cause)
        case .noHandshake(_, let cause): .noHandshake(seconds: limit.roundedSeconds, cause: cause)
        default: self
        }
    }

    /// Indicates whether the error suggests that the app has quit.
    var indicatesAppGone: Bool {
        switch self {
        case .unreachable, .responseLost, .tokenRequired: true
        default: false
        }
    }

    var isTimeout: Bool {
        if case .timedOut = self { true } else { false }
    }

    /// The connection ended before the request was written completely.
    static let unwritten = unreachable(DialError(.linkLost, "the connection ended before the request was sent"))
}

extension ExchangeError {
    /// The error for the caller of a request.
    var appError: AppError {
        switch self {
        case .unwritten: .unwritten
        case .blocked(let seconds): .noHandshake(seconds: seconds)
        case .notPermitted: .permissionChanged
        case .interrupted: .responseLost
        case .timedOut(let seconds): .timedOut(seconds: seconds)
        case .notHTTP, .invalid, .tooLarge: .invalidResponse("\(self)")
        }
    }
}

/// Messages, which name the app's endpoint.
extension AppError {
    /// The reader of a message. Each reader has different tools to act on a hint.
    package enum Audience: Hashable, Sendable, CaseIterable {
        /// An agent with the broker's tools.
        case brokerAgent
        /// An agent with the tools of one app only.
        case appAgent
        /// A person at a command line, or a script.
        case human
    }

    /// Returns the error without a hint.
    package func description(at id: EndpointID) -> String {
        switch self {
        case .unreachable(let failure): "\(id) was not reached: \(failure)"
        case .notApproved: "\(id) is not approved at its current address"
        case .denied: "an owner has denied \(id)"
        case .mismatch(_, let found):
            "the call was not sent: another app, \"\(found)\", answers at the approved address of \(id)"
        case .tokenRequired: "\(id) requires its session token, which changes at every launch"
        case .forbidden(.secretUse): "\(id) requires its session token, and your grant does not allow its use"
        case .forbidden: "your grant does not include \(id)"
        case .toolNotAllowed(let tool, .readOnly):
            "your grant is limited to read-only tools, and \(Self.quoted(tool)) of \(id) is not known to be one"
        case .toolNotAllowed(let tool, let limit):
            "your grant is limited to \(limit), and does not allow \(Self.quoted(tool)) of \(id)"
        case .invalidArguments(let tool, let problem):
            "\(id): \(SanitizedText(tool, limit: 128)) was not called: \(SanitizedText(problem, limit: 500))"
        case .notMCP: "\(id) does not speak MCP"
        case .busy: "\(id) has too many concurrent calls"
        case .noHandshake(let seconds, _):
            "\(id) accepts connections, but completed no MCP handshake within \(seconds) s"
        case .permissionChanged: "a permission for \(id) changed before the call was sent"
        case .accessEnded:
            "the call was cancelled, because \(id) was removed or its approval was revoked; the app may have received it"
        case .leased(let conflict): "the call was not sent: \(conflict)"
        case .leaseRefused(let problem): "\(id) cannot be leased: \(problem.detail)"
        case .timedOut(let seconds, _): "\(id) has not answered within \(seconds) s"
        case .responseLost: "delivered, result unknown: \(id) closed the connection before its response"
        case .refused(_, let problem): problem.detail
        case .invalidResponse(let what): "\(id) answers with \(what)"
        }
    }

    private static func quoted(_ name: String) -> String { "\"\(SanitizedText(name, limit: 128))\"" }

    /// Returns the next step for the audience.
    package func hint(for audience: Audience, at id: EndpointID) -> String {
        switch (self, audience) {
        // The description has the cause and its remedy, which depend on the route.
        case (.unreachable, .brokerAgent): "endpoint_wait waits until it is back"
        case (.unreachable, .appAgent): "call again when it is back"
        case (.unreachable, .human): "`patchbay watch` shows when it is back"
        case (.denied, .human): "`patchbay show \(id)` tells who, and when"
        case (.denied, _): "ask the person whose app it is"
        case (.notApproved, .human), (.mismatch, .human): "patchbay approve \(id)"
        case (.notApproved, _), (.mismatch, _): "a person must run `patchbay approve \(id)`"
        case (.tokenRequired, .brokerAgent): "run endpoint_pair, or `patchbay secret set \(id)`"
        case (.tokenRequired, .appAgent): "a person must run `patchbay secret set \(id)`"
        case (.tokenRequired, .human): "patchbay secret set \(id)"
        case (.forbidden(let scope), _): "ask an owner for the scope \(scope.rawValue) on it"
        case (.toolNotAllowed, .human): "an owner can create an invite with other limits: patchbay pair"
        case (.toolNotAllowed, _): "only an owner can give a grant with other limits (patchbay pair)"
        case (.invalidArguments, .brokerAgent): "endpoint_tools shows the arguments"
        case (.invalidArguments, .appAgent): "tools/list shows the arguments"
        case (.invalidArguments(let tool, _), .human): "patchbay tools \(id) \(SanitizedText(tool, limit: 128))"
        case (.notMCP, .brokerAgent): "use port_forward to reach it"
        case (.notMCP, .appAgent): "a person must run `patchbay forward tcp:0 --endpoint \(id) --detach`"
        case (.notMCP, .human): "patchbay forward tcp:0 --endpoint \(id) --detach"
        case (.busy, _): "wait for a call to finish"
        case (.noHandshake(_, let cause?), _), (.timedOut(_, let cause?), _): cause
        case (.noHandshake, _): "check whether the app is paused at a breakpoint"
        case (.permissionChanged, _): "call again"
        case (.accessEnded, .human): "patchbay list"
        case (.accessEnded, _): "an owner of the broker decides about access to this app"
        case (.leased(let conflict), .brokerAgent) where conflict.isOwnEnding:
            "pass lease to ask for the lease again, or call with lease 0 to give it up"
        case (.leased(let conflict), .appAgent) where conflict.isOwnEnding:
            "ask for the lease again with endpoint_call of the broker's own server"
        // Also a refusal by another host, whose hint is for a person.
        case (_, .brokerAgent) where code == Problem.Code.leased.rawValue:
            "read-only tools work meanwhile; pass lease and timeoutSeconds to wait for your turn"
        case (_, .appAgent) where code == Problem.Code.leased.rawValue:
            "read-only tools work meanwhile; call again later"
        case (.leased, _): "read-only tools work meanwhile; `patchbay lease \(id) --wait 5m` waits for it"
        case (.leaseRefused(let problem), _): problem.hint ?? "call without a lease"
        case (.timedOut, .brokerAgent):
            "the app may be working or paused at a breakpoint; timeoutSeconds sets a longer limit"
        case (.timedOut, .appAgent): "the app may be working or paused at a breakpoint"
        case (.timedOut, .human): "the app may be working or paused at a breakpoint; --timeout sets a longer limit"
        case (.responseLost, _): "check the state of the app before you call again"
        case (.refused(let host, let problem), _): problem.hint ?? "ask an owner of the broker on \(host)"
        case (.invalidResponse, _): "check that this is the expected server"
        }
    }

    /// Returns the description and the next step for the audience.
    package func message(for audience: Audience, at id: EndpointID) -> String {
        "\(description(at: id)): \(hint(for: audience, at: id))"
    }

    /// Returns a tool result with `isError` that contains the message for the audience.
    package func result(for audience: Audience, at id: EndpointID) -> JSONObject {
        .toolFailure(message(for: audience, at: id), code: code)
    }
}
