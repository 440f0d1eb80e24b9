import AccessControl
import Model
import SystemIO

/// Sends the requests of a profile over one route to an endpoint: recognition, secret, session and calls.
///
/// Requests are sent one after another, each on a new connection. These servers work on the app's main thread, and the
/// steps of an authentication have an order. The state outlives the connection, because a server may hold a session for
/// minutes and exchanges a token only once.
actor ProfileClient {
    /// A response with the reservation for its size, which is held until a large result has been reduced.
    typealias Response = (content: AppResponse, reservation: LargeResponseReservation?)

    /// The permissions and limits of one request.
    struct Attempt: Sendable {
        /// The route with its secret. Nil while the server is recognised, which needs no secret.
        let route: AuthorizedRoute?
        let admission: DeliveryAuthorization?
        let limits: ResponseLimits
        /// The timeout that the caller asked for. It extends the timeout of a tool and never shortens it.
        var callerTimeout: Duration?
        /// The trace context of the call.
        var trace: TraceContext?
        /// The end of the request, by the pool's timer.
        let end: Duration

        var secret: EndpointSecret? { route?.secret }
    }

    /// The size limit of an MP4 file in bytes.
    private static let videoLimit = 64 * 1_048_576
    /// The timeout of the request that ends a session when the broker stops, in seconds.
    private static let endLimit = Duration.seconds(2)

    nonisolated let profile: Profile
    nonisolated let route: Route
    /// The endpoint, for messages.
    nonisolated var endpoint: EndpointID { pool.id }
    private let pool: ConnectionPool
    private let access: ProfileAccess
    private let tasks: BackgroundTasks
    private let semaphore = AsyncSemaphore(permits: 1)
    private var authentication: ProfileAuthentication
    /// The secret that the state of the authentication belongs to.
    private var secret: String?
    /// The result of an exchange, until it is stored.
    private var unsavedSecret: EndpointSecret?
    /// The functions that the server listed last.
    private var functions: [ProfileTool] = []
    /// Indicates whether a background task keeps the session alive.
    private var isMaintained = false

    init(
        _ profile: Profile,
        at route: Route,
        over pool: ConnectionPool,
        access: ProfileAccess,
        tasks: BackgroundTasks
    ) {
        self.profile = profile
        self.route = route
        self.pool = pool
        self.access = access
        self.tasks = tasks
        authentication = Self.newAuthentication(profile)
    }

    /// Records that a deviation of the server was repaired.
    nonisolated func record(_ deviation: ServerDeviation.Kind) { pool.record(deviation) }

    private static func newAuthentication(_ profile: Profile) -> ProfileAuthentication {
        ProfileAuthentication(profile, newToken: ExchangeToken(Base62.random128Bits()))
    }

    /// Waits until no other request is in progress.
    ///
    /// - Returns: The permit to release after the request, and the request's permissions and limits.
    /// - Throws: `AppError.busy`, `CancellationError`.
    func begin(_ message: UpstreamMessage, by route: AuthorizedRoute) async throws -> (Permit, Attempt) {
        let end = pool.watch.elapsed + message.limits.total
        let turn = try await withTimeout(message.limits.total, clock: pool.clock) { [semaphore] in
            try await semaphore.acquire()
        }
        guard let turn else { throw AppError.busy }
        return (
            turn,
            Attempt(
                route: route,
                admission: message.admission,
                limits: message.limits,
                callerTimeout: message.callerTimeout,
                trace: message.trace,
                end: end
            )
        )
    }

    // MARK: The handshake

    /// Checks that a server of the profile's kind answers. No secret is sent.
    ///
    /// - Throws: `AppError`, `.invalidResponse` if another server answers; `CancellationError`.
    func recognize(_ attempt: Attempt) async throws -> ServerIdentity {
        let attempt = Attempt(route: nil, admission: nil, limits: attempt.limits, end: attempt.end)
        var recognizer = ProfileRecognizer(profile)
        while let request = recognizer.nextRequest {
            do {
                let response = try await send(request, attempt, idle: attempt.limits.idle).content
                guard response.status < 500 else {
                    throw AppError.invalidResponse("status \(response.status) to \(request)")
                }
                recognizer.receive(response)
            } catch let failure as AppError {
                recognizer.fail()
                // No response is no sign of another server, but it may be the expected one to an unknown path.
                if case .mismatch = recognizer.outcome { throw failure }
            }
        }
        switch recognizer.outcome {
        case .match(let server): return server
        case .mismatch(let reason): throw unrecognized(reason)
        case .undecided: throw unrecognized("no response")
        }
    }

    /// The error for another server. It is not a lasting mismatch, because each handshake recognises the server again
    /// before a secret is sent.
    private func unrecognized(_ reason: String) -> AppError {
        .invalidResponse("\(reason), so it is not \(profile.title)")
    }

    // MARK: Tools

    /// Asks the server for its functions, if the profile has such a list.
    ///
    /// - Throws: `AppError`, `ProfileRefusal`, `CancellationError`.
    func listFunctions(_ attempt: Attempt) async throws -> [ProfileTool] {
        guard let list = profile.functions else { return [] }
        try await prepare(for: nil, attempt)
        guard let request = list.request(with: authentication) else { return [] }
        let response = try await send(request, attempt).content
        do { functions = try list.tools(in: response) } catch { throw error.appError }
        return functions
    }

    /// Returns the tool.
    ///
    /// - Throws: `ProfileRefusal` with the reason and the nearest tool; `AppError`, `CancellationError`.
    func tool(named name: String, _ attempt: Attempt) async throws -> ProfileTool {
        if let tool = try? profile.tool(named: name, functions: functions) { return tool }
        // The server may have added the function since the last list.
        let functions = try await listFunctions(attempt)
        do { return try profile.tool(named: name, functions: functions) } catch { throw ProfileRefusal(error) }
    }

    /// Calls a tool. A call that the server did not execute, because it had dropped the session, is sent once more.
    ///
    /// - Throws: `AppError`, `ProfileRefusal`, `CancellationError`.
    func call(
        _ tool: ProfileTool,
        _ arguments: JSONObject,
        _ attempt: Attempt
    ) async throws -> (ProfileRequest, Response) {
        var isSecond = false
        while true {
            try await prepare(for: tool, attempt)
            let request: ProfileRequest
            do { request = try profile.request(for: tool, arguments: arguments, with: authentication) } catch {
                throw ProfileRefusal(error)
            }
            let response = try await send(
                request,
                attempt,
                idle: max(tool.timeout, attempt.callerTimeout ?? .zero),
                bytes: tool.returnsVideo ? Self.videoLimit : nil
            )
            switch authentication.finish(response.content, of: tool, at: pool.watch.elapsed) {
            case .failed(let failure): throw refusal(failure)
            case .sendAgain where !isSecond: isSecond = true
            case .sendAgain, .deliver: return (request, response)
            }
        }
    }

    // MARK: Authentication

    /// Exchanges the secret and acquires a session, as far as the profile requires them for the tool.
    private func prepare(for tool: ProfileTool?, _ attempt: Attempt) async throws {
        try await saveExchangedSecret()
        let current = attempt.secret?.reveal()
        // A new secret begins a new authentication.
        if let secret, let current, secret != current { authentication = Self.newAuthentication(profile) }
        secret = current ?? secret
        while true {
            switch authentication.nextStep(for: tool, hasSecret: current != nil) {
            case .ready: return scheduleMaintenance()
            case .failed(let failure): throw refusal(failure)
            case .send(let request):
                let response = try await sendBeforeCall(request, attempt)
                if let failure = authentication.receive(response, at: pool.watch.elapsed) { throw refusal(failure) }
            case .store(let token):
                unsavedSecret = try EndpointSecret(token.reveal())
                try await saveExchangedSecret()
            }
        }
    }

    /// Sends a request before the call. A failure means that the call was not sent.
    private func sendBeforeCall(_ request: ProfileRequest, _ attempt: Attempt) async throws -> AppResponse {
        do { return try await send(request, attempt).content } catch {
            let failure = error as? AppError
            if failure?.isDelivered ?? true { authentication.responseLost() }
            switch failure {
            case .timedOut(let seconds, let cause)?: throw AppError.noHandshake(seconds: seconds, cause: cause)
            case .responseLost?: throw AppError.unwritten
            case .invalidResponse(let reason)?: throw refusal(.unexpected(reason))
            default: throw error
            }
        }
    }

    /// Stores the result of an exchange. The sender then tries again, because its permissions have the old secret.
    private func saveExchangedSecret() async throws {
        guard let unsaved = unsavedSecret else { return }
        do { try await access.store(unsaved) } catch {
            throw ProfileRefusal(
                reason: "\(profile.title) was not called: its new token could not be saved: \(error)",
                code: "not-stored"
            )
        }
        (unsavedSecret, secret) = (nil, unsaved.reveal())
        throw AppError.permissionChanged
    }

    private func refusal(_ failure: AuthenticationFailure) -> any Error {
        switch failure {
        case .secretRequired: AppError.tokenRequired(.missing)
        case .secretRejected: AppError.tokenRequired(.rejected)
        case .busy:
            ProfileRefusal(
                reason: "\(profile.title) did not act: another client holds its session; call again when that client "
                    + "has released it",
                code: AppError.busy.code
            )
        case .unexpected(let reason):
            ProfileRefusal(
                reason: "\(profile.title) was not called: it answers with \(reason)",
                code: AppError.invalidResponse(reason).code
            )
        }
    }

    // MARK: The session between calls

    /// Keeps the session alive in the background, and releases it when it is unused. The task ends with this object.
    private func scheduleMaintenance() {
        guard !isMaintained, authentication.nextMaintenance != nil else { return }
        isMaintained = tasks.schedule { [weak self, clock = pool.clock] in
            while let pause = await self?.pauseBeforeMaintenance() {
                guard (try? await clock.sleep(for: pause)) != nil else { return }
                try? await self?.maintain()
            }
        }
    }

    private func pauseBeforeMaintenance() -> Duration? {
        guard let next = authentication.nextMaintenance else {
            isMaintained = false
            return nil
        }
        return max(next - pool.watch.elapsed, .milliseconds(100))
    }

    /// Sends the heartbeat or the release that is due.
    private func maintain() async throws {
        let turn = try await semaphore.acquire()
        defer { turn.release() }
        if let request = authentication.maintenance(at: pool.watch.elapsed) { try await sendForBroker(request) }
    }

    /// Ends Patchbay's own session, so that other clients need not wait for the end of its lifetime.
    func endSession() async {
        guard let request = authentication.release() else { return }
        // A server that is gone has no session.
        _ = try? await withTimeout(Self.endLimit, clock: pool.clock) { try await self.sendForBroker(request) }
    }

    /// Sends a request without a call, if the broker may still use the route.
    private func sendForBroker(_ request: ProfileRequest) async throws {
        let admission = try await access.admit()
        guard let authorized = admission.routes.first(where: { $0.route == route }) else { return }
        let limits = ResponseLimits.handshake
        let end = pool.watch.elapsed + limits.total
        _ = try await send(
            request,
            Attempt(route: authorized, admission: admission, limits: limits, end: end)
        )
    }

    // MARK: Sending

    /// Sends a request over a new connection. Without `idle` the request's own timeout applies, and without `bytes` the
    /// size limit of the attempt.
    private func send(
        _ request: ProfileRequest,
        _ attempt: Attempt,
        idle: Duration? = nil,
        bytes: Int? = nil
    ) async throws -> Response {
        let left = attempt.end - pool.watch.elapsed
        let (connection, _, _) = try await pool.open([AuthorizedRoute(route)], mayReuse: false, within: left)
        // The connection may lead to another launch than the one that was looked up.
        guard await attempt.route?.leadsToLaunch() ?? true else { throw AppError.permissionChanged }
        var exchange = HTTPExchange(
            request.httpRequest(secret: attempt.secret?.reveal(), trace: attempt.trace),
            over: connection,
            limits: ResponseLimits(
                idle: idle ?? request.timeout,
                total: attempt.end - pool.watch.elapsed,
                bytes: bytes ?? attempt.limits.bytes
            ),
            clock: pool.clock,
            reserve: { [pool] in try await pool.reserve($0, for: $1, over: $2, within: $3) }
        )
        do {
            let content = try await exchange.response(by: attempt.admission?.permission)
            if exchange.body?.deviations.contains(.contentCoding) == true { pool.record(.contentCoding) }
            return (content, exchange.reservation)
        } catch ExchangeError.timedOut(let seconds) {
            throw AppError.timedOut(seconds: seconds, cause: profile.timeoutHint)
        } catch let failure as ExchangeError {
            throw failure.appError
        }
    }
}
