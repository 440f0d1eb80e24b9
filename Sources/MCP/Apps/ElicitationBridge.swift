import AccessControl
import Model
import Synchronization
import SystemIO

/// Lets apps and clients of different protocol versions ask each other for input.
final class ElicitationBridge: Sendable {
    private let pool: UpstreamSessionPool
    private let tasks: BackgroundTasks
    private let clock: any Clock<Duration>
    private let watch: ElapsedTimer
    /// The timeout for a client's answer to a request of the app.
    private let clientAnswer: Duration
    /// Requests that wait for input from their clients.
    private let suspendedRequests = Mutex(SuspendedRequestStore())

    init(over pool: UpstreamSessionPool, tasks: BackgroundTasks, clock: any Clock<Duration>, clientAnswer: Duration) {
        self.pool = pool
        self.tasks = tasks
        self.clock = clock
        self.clientAnswer = clientAnswer
        watch = ElapsedTimer(clock)
    }
}

/// Bridges session-mode apps, which send requests on a stream, to 2026-07-28 clients, which receive them as results.
extension ElicitationBridge {
    /// Methods during which 2026-07-28 lets a server request input.
    private static let suspendableMethods: Set = ["tools/call", "prompts/get", "resources/read"]

    /// Runs a request. If a 2026-07-28 client made it, a session-mode app may send requests during processing.
    ///
    /// - Throws: Errors of `body`, `AppError.busy`, `RPCError`.
    func runSuspendable(
        _ request: MCPRequest,
        at id: EndpointID,
        of principal: Principal,
        _ body: @escaping @Sendable (MCPRequest) async throws -> JSONObject
    ) async throws -> JSONObject {
        let capabilities = ClientCapabilities(request.capabilities)
        guard request.supportsInputRequired, !capabilities.isEmpty, Self.suspendableMethods.contains(request.method)
        else { return try await body(request) }
        var params = request.params
        let (state, answers) = (params["requestState"]?.string, params["inputResponses"]?.object ?? [:])
        let isPatchbayState = state?.hasPrefix(SuspendedRequestStore.prefix) == true
        let isNew = state == nil && params["inputResponses"] == nil
        guard isPatchbayState || isNew && mayAskOnStream(id) else { return try await body(request) }
        for name in ["requestState", "inputResponses"] { params[name] = nil }
        // Metadata such as a trace context may differ between the rounds.
        params["_meta"] = nil
        let key = SuspendedRequestStore.Key(
            holder: principal.holder,
            endpoint: id.text,
            method: request.method,
            params: JSON.object(params).text
        )
        let suspended: SuspendedRequest
        if isPatchbayState, let state {
            suspended = try suspendedRequests.withLock { store throws(RPCError) in try store.resume(state, for: key) }
            suspended.provideAnswers(answers, notify: request.notify)
        } else {
            suspended = SuspendedRequest()
            guard begin(suspended, running: request, with: capabilities, body) else { throw AppError.busy }
        }
        switch try await suspended.next() {
        case .completed(let result): return try result.get()
        case .inputRequired(let requests): return try suspend(suspended, for: key, asking: requests)
        }
    }

    private func begin(
        _ suspended: SuspendedRequest,
        running request: MCPRequest,
        with capabilities: ClientCapabilities,
        _ body: @escaping @Sendable (MCPRequest) async throws -> JSONObject
    ) -> Bool {
        suspended.setNotify(request.notify)
        var inner = request
        inner.clientRequester = ClientRequester(
            key: "2026-07-28 \(capabilities.text)",
            protocolVersion: .latestWithHandshake,
            capabilities: capabilities,
            isSingleClient: false,
            handlesInputRequired: false,
            sendRequest: { method, params, _ in await suspended.ask(method, params) }
        )
        if request.notify != nil { inner.notify = { suspended.send($0) } }
        return tasks.schedule { [inner] in await Self.run(suspended, request: inner, body) }
    }

    /// Runs the request until the end, or until the client abandons the request.
    private static func run(
        _ suspended: SuspendedRequest,
        request: MCPRequest,
        _ body: @escaping @Sendable (MCPRequest) async throws -> JSONObject
    ) async {
        await withTaskGroup(of: Void.self) { group in
            group.addTask {
                do { suspended.complete(.success(try await body(request))) } catch {
                    suspended.complete(.failure(error))
                }
            }
            group.addTask { try? await suspended.abandoned.value() }
            await group.next()
            group.cancelAll()
        }
    }

    private func suspend(
        _ suspended: SuspendedRequest,
        for key: SuspendedRequestStore.Key,
        asking requests: JSONObject
    ) throws(RPCError) -> JSONObject {
        do {
            let (state, expired) = try suspendedRequests.withLock { store throws(RPCError) in
                try store.save(suspended, for: key, at: watch.elapsed)
            }
            for old in expired { old.abandoned.complete(.success(())) }
            return [
                "resultType": "input_required", "inputRequests": .object(requests), "requestState": .string(state),
            ]
        } catch {
            suspended.abandoned.complete(.success(()))
            throw error
        }
    }

    /// Returns whether the app may send requests on a stream. True for an app without a connection so far.
    private func mayAskOnStream(_ id: EndpointID) -> Bool {
        guard let server = pool.server(of: id) else { return true }
        return !server.protocolVersion.isStateless && server.sessionID != nil
    }
}

/// Bridges 2026-07-28 apps, which request input by results, to session-mode clients, which are asked on a stream.
extension ElicitationBridge {
    /// The limit of input rounds per request. The SDKs' own clients give up after 10.
    private static let maxRounds = 16

    /// Sends a request. If the result requests input, asks the client and sends the request again with the answers.
    ///
    /// - Throws: `AppError`, `CancellationError`.
    func answerInputRequests(
        _ request: MCPRequest,
        _ send: (MCPRequest) async throws -> UpstreamResponse
    ) async throws -> UpstreamResponse {
        var params = request.params
        for _ in 0..<Self.maxRounds {
            let response = try await send(request.with(params))
            guard let clientRequester = request.clientRequester, clientRequester.handlesInputRequired,
                case .success(let result)? = response.outcome,
                result["resultType"] == "input_required"
            else { return response }
            params["requestState"] = result["requestState"]
            params["inputResponses"] = nil
            let requests = result["inputRequests"]?.object ?? [:]
            if requests.members.isEmpty {
                // The app only wants to be polled.
                try await clock.sleep(for: .milliseconds(250))
                continue
            }
            response.reservation?.release()
            switch await answers(to: requests, clientRequester) {
            case .success(let answers): params["inputResponses"] = .object(answers)
            case .failure(let error): return UpstreamResponse(outcome: .failure(error), size: response.size)
            }
        }
        let error = RPCError.internalError("the app requested input \(Self.maxRounds) times without a result")
        return UpstreamResponse(outcome: .failure(error))
    }

    private func answers(to requests: JSONObject, _ clientRequester: ClientRequester) async -> Result<
        JSONObject, RPCError
    > {
        guard requests.members.count <= ClientRequestForwarder.limit else {
            return .failure(
                .internalError("the app sent more than \(ClientRequestForwarder.limit) input requests at once")
            )
        }
        var answers = JSONObject()
        for member in requests.members {
            let method = member.value["method"]?.string ?? ""
            var params = member.value["params"]?.object
            if params?["mode"] == "url", params?["elicitationId"] == nil {
                // Required until 2025-11-25.
                params?["elicitationId"] = .string(SessionIDSigner.randomText())
            }
            guard clientRequester.capabilities.allow(method, params) else {
                return .failure(.internalError("the app requested \(method), which the client does not support"))
            }
            let answer = try? await withTimeout(clientAnswer, clock: clock) { [params] in
                await clientRequester.sendRequest(method, params, true)
            }
            switch answer {
            case .success(let answer)?: answers[member.name] = answer
            case .failure(let error)?: return .failure(error)
            case nil:
                return .failure(.internalError("the client did not answer within \(clientAnswer.components.seconds) s"))
            }
        }
        return .success(answers)
    }
}
