import JSON
import Model
import Synchronization
import SystemIO

/// Apps of the eras of the handshake that ask on a stream, and callers of 2026-07-28 who take a question as a result.
extension AppProxy {
    /// During which 2026-07-28 lets a server ask.
    private static let interviewable: Set = ["tools/call", "prompts/get", "resources/read"]

    /// Runs a request of a caller of 2026-07-28 so that an app of the eras before may ask while it works.
    ///
    /// - Returns: Nil where `body` is to be run as it is, as nothing can be asked.
    func interview(
        _ request: MCPRequest,
        at id: EndpointID,
        of caller: AgentCaller,
        _ body: @escaping @Sendable (MCPRequest) async throws -> JSONObject
    ) async throws -> JSONObject? {
        let faculties = ClientCapabilities(request.capabilities)
        guard request.mayAskAgain, !faculties.isEmpty, Self.interviewable.contains(request.method) else { return nil }
        var params = request.params
        let (state, answers) = (params["requestState"]?.string, params["inputResponses"]?.object ?? [:])
        let isOurs = state?.hasPrefix(SuspendedRequestStore.prefix) == true
        guard isOurs || (state == nil && params["inputResponses"] == nil) else { return nil }
        for name in ["requestState", "inputResponses"] { params[name] = nil }
        // What is around a request, a trace for one, may be other each time.
        params["_meta"] = nil
        let subject = SuspendedRequestStore.Subject(
            holder: caller.holder,
            endpoint: id.text,
            method: request.method,
            params: JSON.object(params).text
        )
        let interview: SuspendedRequest
        if isOurs, let state {
            interview = try interviews.withLock { interviews throws(RPCError) in try interviews.take(state, subject) }
            interview.take(answers, notify: request.notify)
        } else {
            guard await mayAsk(id) else { return nil }
            interview = SuspendedRequest()
            guard begin(interview, request, faculties, body) else { throw AppError.busy(id) }
        }
        switch try await interview.next() {
        case .ended(let result): return try result.get()
        case .asked(let requests): return try wait(for: requests, interview, subject)
        }
    }

    private func begin(
        _ interview: SuspendedRequest,
        _ request: MCPRequest,
        _ faculties: ClientCapabilities,
        _ body: @escaping @Sendable (MCPRequest) async throws -> JSONObject
    ) -> Bool {
        interview.follow(request.notify)
        let wayBack = ClientRequester(
            key: "2026-07-28 \(faculties.text)",
            revision: .latestWithHandshake,
            faculties: faculties,
            isOneClient: false,
            takesResults: false,
            ask: { method, params, _ in await interview.ask(method, params) }
        )
        let tell: @Sendable (RPCNotification) -> Void = { interview.tell($0) }
        let inner = MCPRequest(
            request.method,
            request.params,
            capabilities: request.capabilities,
            logLevel: request.logLevel,
            wayBack: wayBack,
            notify: request.notify == nil ? nil : tell
        )
        return send(.run { await Self.run(interview, inner, body) })
    }

    /// Until it has ended, or nobody will come back for it.
    private static func run(
        _ interview: SuspendedRequest,
        _ request: MCPRequest,
        _ body: @escaping @Sendable (MCPRequest) async throws -> JSONObject
    ) async {
        await withTaskGroup(of: Void.self) { group in
            group.addTask {
                do { interview.end(.success(try await body(request))) } catch { interview.end(.failure(error)) }
            }
            group.addTask { try? await interview.abandonment.value() }
            await group.next()
            group.cancelAll()
        }
    }

    private func wait(
        for requests: JSONObject,
        _ interview: SuspendedRequest,
        _ subject: SuspendedRequestStore.Subject
    ) throws(RPCError) -> JSONObject {
        do {
            let (key, old) = try interviews.withLock { interviews throws(RPCError) in
                try interviews.keep(interview, subject, at: watch.elapsed)
            }
            for old in old { old.abandonment.settle(.success(())) }
            return [
                "resultType": "input_required", "inputRequests": .object(requests), "requestState": .string(key),
            ]
        } catch {
            interview.abandonment.settle(.success(()))
            throw error
        }
    }

    /// Whether an app may be of the eras in which it asks on a stream; one that nobody has met yet may be.
    private func mayAsk(_ id: EndpointID) async -> Bool {
        guard let line = entries.withLock({ $0[id]?.line }), let met = await line.introduction?.met else { return true }
        return !met.revision.isStateless && met.sessionID != nil
    }
}

/// Apps of 2026-07-28 that ask by their results, and callers of the eras before, who are asked on a stream.
extension AppProxy {
    /// How often one request may be asked something by results; the SDKs' own clients give up at 10.
    private static let rounds = 16

    /// Sends a request; results that ask are answered by asking the caller, where there is a way to it.
    ///
    /// - Throws: `AppError`, `CancellationError`.
    func converse(
        _ request: MCPRequest,
        _ send: (MCPRequest) async throws -> AppReply
    ) async throws -> AppReply {
        var params = request.params
        for _ in 0..<Self.rounds {
            let reply = try await send(request.with(params))
            guard let wayBack = request.wayBack, wayBack.takesResults, case .success(let result) = reply.outcome,
                result["resultType"] == "input_required"
            else { return reply }
            params["requestState"] = result["requestState"]
            params["inputResponses"] = nil
            let requests = result["inputRequests"]?.object ?? [:]
            if requests.members.isEmpty {
                // It wants to be asked again, and nothing else.
                try await clock.sleep(for: .milliseconds(250))
                continue
            }
            reply.permit?.giveBack()
            switch await answers(to: requests, wayBack) {
            case .success(let answers): params["inputResponses"] = .object(answers)
            case .failure(let error): return AppReply(outcome: .failure(error), size: reply.size)
            }
        }
        let error = RPCError.inside("the app has asked \(Self.rounds) times and not come to an end")
        return AppReply(outcome: .failure(error), size: 0)
    }

    private func answers(to requests: JSONObject, _ wayBack: ClientRequester) async -> Result<JSONObject, RPCError> {
        guard requests.members.count <= ClientRequestForwarder.limit else {
            return .failure(.inside("the app asks more than \(ClientRequestForwarder.limit) questions at a time"))
        }
        var answers = JSONObject()
        for member in requests.members {
            let method = member.value["method"]?.string ?? ""
            var params = member.value["params"]?.object
            if params?["mode"] == "url", params?["elicitationId"] == nil {
                // Until 2025-11-25 there must be one.
                params?["elicitationId"] = .string(SessionIDSigner.randomText())
            }
            guard wayBack.faculties.allow(method, params) else {
                return .failure(.inside("the app asks for \(method), which the client cannot be asked for"))
            }
            let limit = limits.question
            let answer = try? await withDeadline(limit, clock: clock) { [params] in
                await wayBack.ask(method, params, true)
            }
            switch answer {
            case .success(let answer)?: answers[member.name] = answer
            case .failure(let error)?: return .failure(error)
            case nil: return .failure(.inside("the client has not answered within \(limit.components.seconds) s"))
            }
        }
        return .success(answers)
    }
}
