package import JSON
package import Model

/// The reason why an app could not be called.
package enum AppError: Error, Hashable, Sendable {
    /// The app was unreachable for the whole wait time.
    case unavailable(EndpointID)
    /// No route of the endpoint is approved, or the app has moved to a route that is not approved.
    case notApproved(EndpointID)
    /// Another app answers on the approved route.
    case mismatch(EndpointID, found: SanitizedText)
    /// The app requires a session token that Patchbay does not have, or the stored token is outdated.
    case tokenRequired(EndpointID)
    /// The caller's grant does not include the scope on this endpoint.
    case forbidden(EndpointID, Scope)
    /// The server does not speak MCP.
    case notMCP(EndpointID)
    case timedOut(EndpointID, seconds: Int)
    /// The server accepts connections and does not complete a handshake.
    case noHandshake(EndpointID, seconds: Int)
    /// The response is not valid MCP.
    case invalidResponse(EndpointID, String)
    /// The call was delivered and the connection ended before the response.
    case responseLost(EndpointID)
    /// The limit of concurrent calls is reached.
    case busy(EndpointID)
}

extension AppError {
    /// The machine-readable code, also used in the audit log.
    package var code: String {
        switch self {
        case .unavailable: "unavailable"
        case .notApproved: "not-approved"
        case .mismatch: "changed"
        case .tokenRequired: "token-required"
        case .forbidden: "not-permitted"
        case .notMCP: "not-mcp"
        case .timedOut: "timeout"
        case .noHandshake: "no-handshake"
        case .invalidResponse: "invalid-response"
        case .responseLost: "response-lost"
        case .busy: "busy"
        }
    }
}

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

    /// The next step for the audience.
    package func hint(for audience: Audience) -> String {
        switch (self, audience) {
        case (.unavailable, .brokerAgent): "start the app or plug the phone in, then endpoint_wait for it"
        case (.unavailable, .appAgent): "start the app or plug the phone in, then call again"
        case (.unavailable, .human): "start the app or plug the phone in; `patchbay watch` shows when it is back"
        case (.notApproved(let id), .human), (.mismatch(let id, _), .human): "patchbay approve \(id)"
        case (.notApproved(let id), _), (.mismatch(let id, _), _): "a person must run `patchbay approve \(id)`"
        case (.tokenRequired(let id), .brokerAgent): "run endpoint_pair, or `patchbay secret set \(id)`"
        case (.tokenRequired(let id), .appAgent): "a person must run `patchbay secret set \(id)`"
        case (.tokenRequired(let id), .human): "patchbay secret set \(id)"
        case (.forbidden(_, let scope), _): "ask an owner for the scope \(scope.rawValue) on it"
        case (.notMCP, .brokerAgent): "use port_forward to reach it"
        case (.notMCP(let id), .appAgent): "a person must run `patchbay forward tcp:0 --endpoint \(id) --detach`"
        case (.notMCP(let id), .human): "patchbay forward tcp:0 --endpoint \(id) --detach"
        case (.timedOut, .brokerAgent):
            "the app may be working or paused at a breakpoint; timeoutSeconds sets a longer limit"
        case (.timedOut, .appAgent): "the app may be working or paused at a breakpoint"
        case (.timedOut, .human): "the app may be working or paused at a breakpoint; --timeout sets a longer limit"
        case (.noHandshake, _): "check whether the app is paused at a breakpoint"
        case (.invalidResponse, _): "check that this is the expected server"
        case (.responseLost, _): "check the state of the app before you call again"
        case (.busy, _): "wait for a call to finish"
        }
    }

    /// The description and the next step for the audience.
    package func message(for audience: Audience) -> String { "\(description): \(hint(for: audience))" }

    /// Indicates whether the app received the call and may have executed it.
    package var isDelivered: Bool {
        switch self {
        case .timedOut, .invalidResponse, .responseLost: true
        case .unavailable, .notApproved, .mismatch, .tokenRequired, .forbidden, .notMCP, .noHandshake, .busy: false
        }
    }
}

extension AppError: CustomStringConvertible {
    /// The error without a hint.
    package var description: String {
        switch self {
        case .unavailable(let id):
            "\(id) did not become reachable in time"
        case .notApproved(let id):
            "\(id) is not approved at its current address"
        case .mismatch(let id, let found):
            "the call was not sent: another app, \"\(found)\", answers at the approved address of \(id)"
        case .tokenRequired(let id):
            "\(id) requires its session token, which changes at every launch"
        case .forbidden(let id, .secretUse):
            "\(id) requires its session token, and your grant does not allow its use"
        case .forbidden(let id, _):
            "your grant does not include \(id)"
        case .notMCP(let id):
            "\(id) does not speak MCP"
        case .timedOut(let id, let seconds):
            "\(id) has not answered within \(seconds) s"
        case .noHandshake(let id, let seconds):
            "\(id) accepts connections, but completed no MCP handshake within \(seconds) s"
        case .invalidResponse(let id, let what):
            "\(id) answers with \(what)"
        case .responseLost(let id):
            "delivered, result unknown: \(id) closed the connection before its response"
        case .busy(let id):
            "\(id) has too many concurrent calls"
        }
    }
}

extension AppError {
    /// Converts an error of a request to the error for the caller.
    init(_ error: any Error, at id: EndpointID) {
        self =
            switch error {
            case let failure as AppError: failure
            case let error as RPCError:
                .invalidResponse(id, "error \(error.code): \(SanitizedText(error.message, limit: 500))")
            // Cancelled: no client receives this error.
            default: .responseLost(id)
            }
    }

    /// A tool result with `isError` that contains the message for the audience.
    package func result(for audience: Audience) -> JSONObject {
        AppProxy.result(saying: message(for: audience), code: code)
    }
}

/// The reason why one attempt to reach an app failed.
package enum UpstreamError: Error, Hashable, Sendable {
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
    case notApproved
    /// Another app than the expected one answered on an approved route.
    case mismatch(Route, found: SanitizedText)
    case tokenRequired(TokenProblem)
    case forbidden(Scope)
    /// The request was delivered and the stream ended before the response.
    case responseLost
    /// The request was delivered and the app was silent for this long.
    case timedOut(seconds: Int)
    /// Nothing was delivered, because the server completed no handshake within this time.
    case noHandshake(seconds: Int)
    /// The response cannot be used. The text continues the sentence "it answers with".
    case invalidResponse(String)
    /// The server does not speak MCP.
    case notMCP
    case busy
    /// Nothing was delivered, because a permission changed after the lookup.
    case permissionChanged
}

extension UpstreamError {
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

    /// The stream broke before the request was written completely.
    static let unwritten = unreachable(DialError(.linkLost, "the connection ended before the request was sent"))
}
