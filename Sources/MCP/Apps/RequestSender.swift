import AccessControl
import JSON
import Model
import Registry
import SystemIO

/// Sends requests to apps and retries until the app is reachable.
struct RequestSender: Sendable {
    let registry: EndpointRegistry
    let authorizer: any EndpointAuthorizer
    let pool: UpstreamPool
    let clientSessions: ClientSessions
    let elicitationBridge: ElicitationBridge
    let cache: AppCache
    /// Notifies of changes of an endpoint's routes, state, approval or token.
    let stateNotifier: EndpointNotifier<Void>
    /// The total timeout of a request without a timeout of its own, apart from the wait time.
    let total: Duration
    let clock: any Clock<Duration>

    /// Sends a request to an app. An unreachable app is retried for the wait time.
    ///
    /// - Throws: `AppError`, `CancellationError`.
    func send(
        _ request: MCPRequest,
        at id: EndpointID,
        for caller: AgentCaller,
        wait: Duration
    ) async throws -> AppReply {
        do {
            let reply = try await elicitationBridge.answerInputRequests(request) {
                try await sendWithRetry($0, at: id, for: caller, wait: wait)
            }
            await audit(request, at: id, for: caller, size: reply.size, outcome: Self.outcome(of: reply))
            return reply
        } catch let failure as AppError {
            await audit(request, at: id, for: caller, size: 0, outcome: failure.code)
            throw failure
        } catch {
            await audit(request, at: id, for: caller, size: 0, outcome: "cancelled")
            throw error
        }
    }

    private func sendWithRetry(
        _ request: MCPRequest,
        at id: EndpointID,
        for caller: AgentCaller,
        wait: Duration
    ) async throws -> AppReply {
        let watch = ElapsedTimer(clock)
        let annotations = await annotations(of: request, id)
        // The caller's timeout covers everything; without one, the wait for the app has its own limit.
        let limit = request.timeout ?? wait + total
        var policy = RetryPolicy(of: id, for: min(wait, limit), mayRepeat: request.mayRepeat(annotations))
        var wakeups: AsyncStream<Void>?
        while true {
            let failure: UpstreamError
            do {
                return try await sendOnce(
                    request,
                    at: id,
                    for: caller,
                    annotations: annotations,
                    within: limit - watch.elapsed
                )
            } catch let error as UpstreamError {
                failure = error
            }
            switch policy.decision(after: failure, at: watch.elapsed, sinceArrival: pool.sinceArrival(of: id)) {
            case .tryAgain:
                // The app may receive the request twice; each delivery has its own audit entry.
                if failure == .responseLost {
                    await audit(request, at: id, for: caller, size: 0, outcome: "lost, sent again")
                }
                continue
            case .giveUp(let failure): throw failure
            case .wait(let longest):
                if let pending = wakeups {
                    let wasNotified = try await withTimeout(longest, clock: clock) {
                        for await _ in pending { break }
                        return true
                    }
                    // A cancelled iteration ends its stream.
                    if wasNotified == nil { wakeups = stateNotifier.stream(of: id, bufferSize: 1) { _, _ in () } }
                } else {
                    // A change before this subscription is noticed by the next attempt.
                    wakeups = stateNotifier.stream(of: id, bufferSize: 1) { _, _ in () }
                }
            }
        }
    }

    /// Makes one attempt.
    ///
    /// - Throws: `UpstreamError`, `CancellationError`.
    private func sendOnce(
        _ request: MCPRequest,
        at id: EndpointID,
        for caller: AgentCaller,
        annotations: ToolAnnotations,
        within limit: Duration
    ) async throws -> AppReply {
        // The request may have waited, and its grant may have ended meanwhile.
        guard authorizer.isLive(caller) else { throw CancellationError() }
        let generation = authorizer.generation
        let endpoint = try await pool.endpoint(id)
        let (session, access) = try await pool.authorize(caller, to: endpoint)
        let admission = Admission(access.routes, of: caller, by: authorizer, since: generation, limit: limit)
        do {
            let reply = try await clientSessions.send(
                request,
                to: endpoint,
                for: caller,
                shared: session,
                by: admission,
                annotations: annotations
            )
            if endpoint.state != .online { await registry.report(nil, of: id) }
            pool.recordTokenNeed(of: id, of: nil)
            if access.hasSecret { await authorizer.recordSecretResult(for: endpoint, accepted: true) }
            return reply
        } catch UpstreamError.tokenRequired(.rejected) where caller.may(.secretUse, on: endpoint) {
            pool.recordTokenNeed(of: id, of: endpoint)
            await authorizer.recordSecretResult(for: endpoint, accepted: false)
            throw UpstreamError.tokenRequired(.rejected)
        } catch UpstreamError.tokenRequired(.missing) where access.isSecretOutdated {
            pool.recordTokenNeed(of: id, of: endpoint)
            throw UpstreamError.tokenRequired(.outdated)
        } catch UpstreamError.tokenRequired(.missing) where caller.may(.secretUse, on: endpoint) {
            pool.recordTokenNeed(of: id, of: endpoint)
            throw UpstreamError.tokenRequired(.missing)
        } catch UpstreamError.tokenRequired where !caller.may(.secretUse, on: endpoint) {
            throw UpstreamError.forbidden(.secretUse)
        } catch UpstreamError.unreachable(let failure) {
            // Reported earlier than the prober would notice. The ports of USB devices are probed separately.
            if endpoint.state == .online, endpoint.isInNetwork { await registry.report(failure, of: id) }
            throw UpstreamError.unreachable(failure)
        } catch let error where !(error is UpstreamError) && !(error is CancellationError) {
            throw UpstreamError.unreachable(DialError(.failed, "\(id) could not be reached: \(error)"))
        }
    }

    /// Returns the listed annotations of the called tool, or `.unknown` if the app has not been listed.
    func annotations(of request: MCPRequest, _ id: EndpointID) async -> ToolAnnotations {
        guard let tool = request.tool else { return .unknown }
        return await cache.record(of: id).annotations[tool] ?? .unknown
    }

    // MARK: The log

    /// Methods that are audited. Lists are not, because clients request them automatically.
    private static let auditedMethods: Set = ["tools/call", "resources/read", "prompts/get"]

    private func audit(_ request: MCPRequest, at id: EndpointID, for caller: AgentCaller, size: Int, outcome: String)
        async
    {
        guard Self.auditedMethods.contains(request.method) else { return }
        let event = EndpointCallEvent(of: id, subject: SanitizedText(request.subject), bytes: size, outcome: outcome)
        await authorizer.audit(event, by: caller)
    }

    private static func outcome(of reply: AppReply) -> String {
        switch reply.outcome {
        case .success(let result): result["isError"] == true ? "answered with isError" : "answered"
        case .failure(let error): "answered with error \(error.code)"
        }
    }
}

extension Endpoint {
    fileprivate var isInNetwork: Bool {
        routes.contains { $0.route.isNetwork }
    }
}
