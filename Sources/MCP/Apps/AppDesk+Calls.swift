package import JSON
import Model

/// Calling apps' tools.
extension AppDesk {
    package func call(_ call: AppCall, of caller: AgentCaller) async throws(AppFailure) -> JSONObject {
        let params: JSONObject = ["name": .string(call.tool), "arguments": .object(call.arguments)]
        let request = AgentRequest("tools/call", params, patience: call.patience, notify: call.notify)
        let id = call.endpoint.id
        do {
            return try await self.call(request, at: id, for: caller, wait: call.wait, maxPixels: call.maxPixels)
        } catch let error as RPCError {
            return Self.result(
                saying: "\(id) refused the call (error \(error.code)): \(error.message)",
                code: "refused"
            )
        } catch {
            throw Self.failure(error, id)
        }
    }

    /// - Throws: `AppFailure`, an `RPCError` of the app's own, `CancellationError`.
    func call(
        _ request: AgentRequest,
        at id: EndpointID,
        for caller: AgentCaller,
        wait: Duration,
        maxPixels: Int
    ) async throws -> JSONObject {
        var request = request
        // Whoever wants the original gets what the app gives by itself.
        if maxPixels != 0, request.isOpenToJPEG, await offersJPEG(request, id) { request = request.askingForJPEG }
        let result = try await reach(request, at: id, for: caller, wait: wait).outcome.get()
        return await trim(result, maxPixels, caller)
    }

    private func offersJPEG(_ request: AgentRequest, _ id: EndpointID) async -> Bool {
        guard await traits(of: request, id).offersJPEG else { return false }
        return (try? await endpoint(id).kind) == .appreveal
    }

    /// A result of a tool that could not be called.
    static func result(saying text: String, code: String) -> JSONObject {
        [
            "content": [["type": "text", "text": .string(text)]], "isError": true,
            "_meta": ["patchbay/failure": .string(code)],
        ]
    }
}
