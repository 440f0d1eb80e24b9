import Model
import SystemIO

/// Apps of 2026-07-28, which request input by results, for session-mode clients, which are asked on a stream.
extension RequestSender {
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
            guard let client = request.clientRequester, client.isAskedOnStreams,
                case .success(let result)? = response.outcome,
                result["resultType"] == "input_required"
            else { return response }
            params["requestState"] = result["requestState"]
            params["inputResponses"] = nil
            let requests = result["inputRequests"]?.object ?? [:]
            if requests.members.isEmpty {
                // The app only wants to be polled.
                try await context.clock.sleep(for: .milliseconds(250))
                continue
            }
            response.reservation?.release()
            do throws(RPCError) {
                params["inputResponses"] = .object(try await answers(to: requests, of: client))
            } catch {
                return UpstreamResponse(outcome: .failure(error), size: response.size)
            }
        }
        let error = RPCError.internalError("the app requested input \(Self.maxRounds) times without a result")
        return UpstreamResponse(outcome: .failure(error))
    }

    private func answers(to requests: JSONObject, of client: ClientRequester) async throws(RPCError) -> JSONObject {
        guard requests.members.count <= AppRequests.limit else {
            throw .internalError("the app sent more than \(AppRequests.limit) input requests at once")
        }
        var answers = JSONObject()
        for member in requests.members {
            let method = member.value["method"]?.string ?? ""
            var params = member.value["params"]?.object
            if params?["mode"] == "url", params?["elicitationId"] == nil {
                // Required until 2025-11-25.
                params?["elicitationId"] = .string(Base62.random128Bits())
            }
            guard client.capabilities.allow(method, params) else {
                throw .internalError("the app requested \(method), which the client does not support")
            }
            let (request, limit) = (SuspendedRequest(method, params), context.timeouts.clientAnswer)
            answers[member.name] = try await client.ask(request, within: limit, clock: context.clock).get()
        }
        return answers
    }
}
