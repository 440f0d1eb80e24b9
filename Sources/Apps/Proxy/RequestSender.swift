import AccessControl
import Logging
import Metrics
import Model
import Registry
import SystemIO

/// Sends requests to apps and retries until the app is reachable.
struct RequestSender: Sendable {
    let context: ProxyContext
    let leases: LeaseService
    let pool: UpstreamSessionPool
    let sizeLimiter: ResultSizeLimiter
    let resourceLinks: ResourceLinkFilter

    /// Sends a request to an app. An unreachable app is retried for the wait time.
    ///
    /// - Throws: `AppError`, `CancellationError`.
    func send(
        _ request: MCPRequest,
        at id: EndpointID,
        for principal: Principal
    ) async throws -> UpstreamResponse {
        let watch = ElapsedTimer(context.clock)
        func measured(_ result: String) {
            if Self.auditedMethods.contains(request.method) { CallMetrics.called(result, after: watch.elapsed) }
        }
        do {
            try await requireTool(request, at: id, for: principal)
            let response = try await pool.endpointTasks.run(at: id) {
                try await answerInputRequests(request) { try await sendWithRetry($0, at: id, for: principal) }
            }
            measured(Self.result(of: response))
            await audit(request, at: id, for: principal, size: response.size, outcome: Self.outcome(of: response))
            return response
        } catch let failure as AppError {
            measured(failure.code)
            await audit(request, at: id, for: principal, size: 0, outcome: failure.code)
            throw failure
        } catch {
            measured("cancelled")
            await audit(request, at: id, for: principal, size: 0, outcome: "cancelled")
            throw error
        }
    }

    /// Records a tool call that is not sent because of its arguments.
    func recordRefusal(_ failure: AppError, of request: MCPRequest, at id: EndpointID, for principal: Principal) async {
        CallMetrics.called(failure.code, after: .zero)
        await audit(request, at: id, for: principal, size: 0, outcome: failure.code)
    }

    /// Throws if the principal's grant is limited to certain tools, and the request is none of them. A request that is
    /// not a tool call must be read-only.
    ///
    /// - Throws: `AppError`.
    func requireTool(_ request: MCPRequest, at id: EndpointID, for principal: Principal) async throws {
        guard principal.tools != .all else { return }
        let endpoint = try await pool.endpoint(id)
        guard principal.may(.endpointCall, on: endpoint) else { throw AppError.forbidden(.endpointCall) }
        let effect = ToolEffect(of: request, await annotations(of: request, id), on: endpoint.kind)
        let isAllowed =
            request.tool.map { principal.tools.allows($0, isReadOnly: effect == .readOnly) } ?? (effect == .readOnly)
        guard isAllowed else { throw AppError.toolNotAllowed(request.subject, limit: principal.tools) }
    }

    private func sendWithRetry(
        _ request: MCPRequest,
        at id: EndpointID,
        for principal: Principal
    ) async throws -> UpstreamResponse {
        let (watch, wait) = (ElapsedTimer(context.clock), request.wait ?? context.timeouts.wait)
        let annotations = await annotations(of: request, id)
        let request = annotations.originalName.map { request.with(request.params.with("name", .string($0))) } ?? request
        // The timeout of the request covers everything; without one, the wait for the app has its own limit.
        let limit = request.timeout ?? wait + context.timeouts.response.total
        let phone = try? await pool.endpoint(id).location.udid
        var policy = RetryPolicy(
            for: min(wait, limit),
            mayRepeat: annotations.mayRepeat(request),
            isTokenLogged: phone?.platform == .android
        )
        var wakeups: AsyncStream<Void>?
        var held = Duration.zero
        defer { CallMetrics.held(held) }
        while true {
            let failure: AppError
            do {
                return try await sendOnce(
                    request,
                    at: id,
                    for: principal,
                    annotations: annotations,
                    within: limit - watch.elapsed
                )
            } catch let error as AppError {
                failure = watch.elapsed >= limit ? error.reporting(limit: limit) : error
            }
            switch policy.decision(after: failure, at: watch.elapsed, sinceArrival: pool.sinceArrival(of: id)) {
            case .tryAgain:
                // The app may receive the request twice; each delivery has its own audit entry.
                if failure == .responseLost {
                    await audit(request, at: id, for: principal, size: 0, outcome: "lost, sent again")
                }
                continue
            case .giveUp: throw failure
            case .wait(let longest):
                let start = watch.elapsed
                defer { held += watch.elapsed - start }
                if let pending = wakeups {
                    let wasNotified = try await withTimeout(longest, clock: context.clock) {
                        for await _ in pending { break }
                        return true
                    }
                    // A cancelled iteration ends its stream.
                    if wasNotified == nil {
                        wakeups = context.stateNotifier.stream(of: id, bufferSize: 1) { _, _ in () }
                    }
                } else {
                    // A change before this subscription is noticed by the next attempt.
                    wakeups = context.stateNotifier.stream(of: id, bufferSize: 1) { _, _ in () }
                }
            }
        }
    }

    /// Makes one attempt.
    ///
    /// - Throws: `AppError`, `CancellationError`.
    private func sendOnce(
        _ request: MCPRequest,
        at id: EndpointID,
        for principal: Principal,
        annotations: ToolAnnotations,
        within limit: Duration
    ) async throws -> UpstreamResponse {
        // The request may have waited, and its grant may have ended meanwhile.
        guard context.authorizer.isLive(principal) else { throw CancellationError() }
        let (generation, watch) = (context.authorizer.generation, ElapsedTimer(context.clock))
        let endpoint = try await pool.endpoint(id)
        let (shared, access) = try await pool.authorize(principal, to: endpoint)
        do {
            let checkout = try await pool.checkOut(
                for: request,
                of: principal,
                at: endpoint,
                shared: shared,
                by: access.routes,
                within: limit
            )
            defer { pool.checkIn(checkout) }
            let admission = DeliveryAuthorization(
                access.routes,
                of: principal,
                by: context.authorizer,
                since: generation,
                limit: limit - watch.elapsed
            )
            let response = try await withLease(of: endpoint, for: principal, request, annotations) {
                try await checkout.session.send(request, to: endpoint, by: admission, annotations: annotations)
            }
            if endpoint.state != .online { await context.registry.report(nil, of: id) }
            pool.recordTokenNeed(of: id, of: nil)
            if access.hasSecret { await context.authorizer.recordSecretResult(for: endpoint, accepted: true) }
            return response
        } catch AppError.tokenRequired(.rejected) where principal.may(.secretUse, on: endpoint) {
            pool.recordTokenNeed(of: id, of: endpoint)
            await context.authorizer.recordSecretResult(for: endpoint, accepted: false)
            await context.registry.endSameLaunch(of: id)
            throw AppError.tokenRequired(.rejected)
        } catch AppError.tokenRequired(.missing)
            where access.isSecretOutdated || principal.may(.secretUse, on: endpoint)
        {
            pool.recordTokenNeed(of: id, of: endpoint)
            throw AppError.tokenRequired(access.isSecretOutdated ? .outdated : .missing)
        } catch AppError.tokenRequired where !principal.may(.secretUse, on: endpoint) {
            throw AppError.forbidden(.secretUse)
        } catch AppError.unreachable(let failure) {
            // Reported earlier than the prober would notice. The ports of USB devices are probed separately.
            if endpoint.state == .online, endpoint.isInNetwork { await context.registry.report(failure, of: id) }
            throw AppError.unreachable(failure)
        } catch let error where !(error is AppError) && !(error is CancellationError) {
            throw AppError.unreachable(DialError(.failed, "\(id) could not be reached: \(error)"))
        }
    }

    /// Runs a request that may change the app, unless another client has the lease. The next client gets the lease
    /// after the request has ended.
    ///
    /// - Throws: `AppError.leased`, errors of `body`.
    private func withLease(
        of endpoint: Endpoint,
        for principal: Principal,
        _ request: MCPRequest,
        _ annotations: ToolAnnotations,
        _ body: () async throws -> UpstreamResponse
    ) async throws -> UpstreamResponse {
        guard !request.isObservation, ToolEffect(of: request, annotations, on: endpoint.kind) == .changing else {
            return try await body()
        }
        let holder = principal.leaseHolder
        let call: UInt64
        do { call = try leases.beginCall(of: endpoint, by: holder) } catch AccessError.leased(let conflict) {
            throw AppError.leased(conflict.known(to: principal))
        }
        defer { leases.endCall(call) }
        return try await body()
    }

    /// Returns the listed annotations of the called tool, or `.unknown` if the app has not been listed.
    func annotations(of request: MCPRequest, _ id: EndpointID) async -> ToolAnnotations {
        guard let tool = request.tool else { return .unknown }
        return await context.cache.record(of: id).annotations(of: tool) ?? .unknown
    }

    // MARK: The log

    /// Methods that are audited. Lists are not, because clients request them automatically.
    private static let auditedMethods: Set = ["tools/call", "resources/read", "prompts/get"]

    private func audit(_ request: MCPRequest, at id: EndpointID, for principal: Principal, size: Int, outcome: String)
        async
    {
        guard Self.auditedMethods.contains(request.method), !request.isObservation else { return }
        var outcome = outcome
        if !request.conversions.isEmpty {
            // Each kind once, because a list may have many elements.
            outcome += "; arguments converted: \(Set(request.conversions).sorted().joined(separator: ", "))"
        }
        let subject = SanitizedText(request.subject)
        if let trace = request.trace.id {
            context.logger.debug(
                "a traced request ended",
                metadata: ["id": "\(id)", "request": "\(subject)", "outcome": "\(outcome)", "trace": "\(trace)"]
            )
        }
        let event = EndpointCallEvent(
            of: id,
            subject: subject,
            bytes: size,
            outcome: outcome,
            trace: request.trace.id
        )
        await context.authorizer.audit(event, by: principal)
    }

    private static func result(of response: UpstreamResponse) -> String {
        switch response.outcome {
        case .failure?: "error"
        case .success(let result)? where result["isError"] == true: "tool-error"
        case .success?, nil: "answered"
        }
    }

    private static func outcome(of response: UpstreamResponse) -> String {
        switch response.outcome {
        case .failure(let error)?: "answered with error \(error.code)"
        case .success(let result)? where result["isError"] == true: "answered with isError"
        case .success?, nil: "answered"
        }
    }
}

extension Endpoint {
    fileprivate var isInNetwork: Bool {
        routes.contains { $0.route.isNetwork }
    }
}

/// The metrics of calls of apps.
enum CallMetrics {
    /// Records a call with its result, one of a few words.
    static func called(_ result: String, after duration: Duration) {
        timer(MetricDefinition.calls, [("result", result)]).recordNanoseconds(duration.nanoseconds)
    }

    /// Records the time that a call waited for an app that was not reachable.
    static func held(_ duration: Duration) {
        guard duration > .zero else { return }
        timer(MetricDefinition.holds, []).recordNanoseconds(duration.nanoseconds)
    }

    private static func timer(_ metric: MetricDefinition, _ dimensions: [(String, String)]) -> Timer {
        Timer(label: metric.name, dimensions: dimensions)
    }
}

extension Duration {
    fileprivate var nanoseconds: Int64 { components.seconds * 1_000_000_000 + components.attoseconds / 1_000_000_000 }
}
