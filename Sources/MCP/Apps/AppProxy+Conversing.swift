import JSON
import Model
import SystemIO

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
