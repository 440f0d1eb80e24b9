import Model

/// The authentication and the session of one connection to an endpoint, as a state machine without I/O.
///
/// Before a call, the caller repeats `nextStep` until it is `ready`, and sends each request with the endpoint's secret.
/// The machine never holds the secret itself: it only marks the requests that carry it.
package struct ProfileAuthentication: Sendable {
    package enum Step: Hashable, Sendable {
        /// The call can be sent.
        case ready
        /// The request must be sent, and its response passed to `receive`.
        case send(ProfileRequest)
        /// The new token must be stored as the endpoint's secret before anything else is sent.
        case store(ExchangeToken)
        case failed(AuthenticationFailure)
    }

    package enum Verdict: Hashable, Sendable {
        /// The response is the result of the call.
        case deliver
        /// The server did not execute the call, because it has dropped the session. The call is sent again once.
        case sendAgain
        case failed(AuthenticationFailure)
    }

    private enum TokenState: Hashable {
        case usable
        /// The secret may be a token for one use. `isUncertain` if an earlier exchange may have reached the server.
        case unexchanged(isUncertain: Bool)
        case exchanged
    }

    /// The timeout of the requests of this machine in seconds.
    private static let timeout = Duration.seconds(15)

    private let method: AuthenticationMethod
    private let newToken: ExchangeToken
    private var token: TokenState
    private var session: ProfileSession?

    /// Creates the state of a new connection.
    ///
    /// - Parameters:
    ///   - profile: The profile of the endpoint.
    ///   - newToken: A random token for the exchange of a token for one use.
    package init(_ profile: Profile, newToken: ExchangeToken) {
        method = profile.authentication
        self.newToken = newToken
        token = Self.initialToken(method)
        session = profile.session.map(ProfileSession.init)
    }

    private static func initialToken(_ method: AuthenticationMethod) -> TokenState {
        if case .exchange = method { .unexchanged(isUncertain: false) } else { .usable }
    }

    // MARK: Before a call

    /// Returns the next step before a call.
    ///
    /// - Parameters:
    ///   - tool: The tool to be called; nil for the list of functions.
    ///   - hasSecret: Indicates whether the endpoint's secret is stored and may be used.
    /// - Returns: The step, which the caller takes at once.
    package mutating func nextStep(for tool: ProfileTool?, hasSecret: Bool) -> Step {
        if method.requiresSecret, !hasSecret { return .failed(.secretRequired) }
        if case .exchange(let template) = method, isExchanging {
            return send(template, ["new_token": .string(newToken.reveal())])
        }
        if token == .exchanged {
            token = .usable
            return .store(newToken)
        }
        guard tool?.needsSession == true, let template = session?.nextTemplate else { return .ready }
        return send(template, [:])
    }

    /// Processes the response to the request of `nextStep`. Returns a failure that ends the call.
    package mutating func receive(_ response: AppResponse, at now: Duration) -> AuthenticationFailure? {
        if isExchanging { return receiveExchange(response) }
        if response.status == 401, method.requiresSecret { return rejected() }
        return session?.receive(response, at: now)
    }

    /// Processes the end of the connection before the response to the request of `nextStep`.
    package mutating func responseLost() { if isExchanging { token = .unexchanged(isUncertain: true) } }

    private var isExchanging: Bool { if case .unexchanged = token { true } else { false } }

    private mutating func receiveExchange(_ response: AppResponse) -> AuthenticationFailure? {
        switch (response.status, token) {
        case (200..<300, _), (401, .unexchanged(isUncertain: true)):
            // After a lost response, the server rejects the old token because it has the new one.
            token = .exchanged
            return nil
        case (401, _):
            // The stored secret is no token for one use: it may be the result of an earlier exchange.
            token = .usable
            return nil
        default: return .unexpected("status \(response.status) to the exchange of the token")
        }
    }

    private func send(_ template: RequestTemplate, _ values: [String: JSON]) -> Step {
        request(template, values).map { .send($0) } ?? .failed(.unexpected("a session that no path can contain"))
    }

    // MARK: The call

    /// The session's ID for paths.
    var pathSession: JSON? { session?.pathID.map { .string($0) } }

    func authorized(_ request: ProfileRequest, inSession: Bool) -> ProfileRequest {
        var request = request
        request.usesSecret = method.requiresSecret
        request.sessionHeader = inSession ? session?.header : nil
        return request
    }

    /// Judges the response to a call.
    package mutating func finish(_ response: AppResponse, of tool: ProfileTool, at now: Duration) -> Verdict {
        if response.status == 401, method.requiresSecret { return .failed(rejected()) }
        return tool.needsSession ? session?.finish(response, at: now) ?? .deliver : .deliver
    }

    private mutating func rejected() -> AuthenticationFailure {
        session?.forget()
        token = Self.initialToken(method)
        return .secretRejected
    }

    // MARK: Between calls

    /// The time of the next heartbeat or release; nil without a session of Patchbay's own.
    package var nextMaintenance: Duration? { session?.nextMaintenance }

    /// Returns the heartbeat or the release that is due. A session without a call for its lifetime is released, so that
    /// other clients can use the device.
    package mutating func maintenance(at now: Duration) -> ProfileRequest? {
        guard let due = nextMaintenance, due <= now else { return nil }
        return session?.heartbeat(at: now).flatMap { sessionRequest($0) } ?? release()
    }

    /// Returns the request that ends Patchbay's own session, and forgets the session.
    package mutating func release() -> ProfileRequest? {
        defer { session?.forget() }
        return session?.releaseTemplate.flatMap { sessionRequest($0) }
    }

    private func sessionRequest(_ template: RequestTemplate) -> ProfileRequest? {
        request(template, pathSession.map { ["session": $0] } ?? [:]).map { authorized($0, inSession: true) }
    }

    private func request(_ template: RequestTemplate, _ values: [String: JSON]) -> ProfileRequest? {
        (try? template.request(values, timeout: Self.timeout)).map { authorized($0, inSession: false) }
    }
}

/// The reason why a call cannot be authenticated.
package enum AuthenticationFailure: Hashable, Sendable {
    case secretRequired
    /// The server rejects the stored secret, for example because the app was restarted.
    case secretRejected
    /// Another client holds the session of the device.
    case busy
    /// The text continues the sentence "it answers with".
    case unexpected(String)
}

/// A random token that replaces a token for one use. Printing never shows its value.
package struct ExchangeToken: Hashable, Sendable {
    private let text: String

    /// Creates a token from random text: one line of printable ASCII.
    package init(_ text: String) { self.text = text }

    /// Returns the token, for the exchange and for the storage as the endpoint's secret.
    package func reveal() -> String { text }
}

extension ExchangeToken: CustomStringConvertible, CustomDebugStringConvertible, CustomReflectable {
    package var description: String { "(secret)" }
    package var debugDescription: String { description }
    package var customMirror: Mirror { Mirror(self, children: []) }
}
