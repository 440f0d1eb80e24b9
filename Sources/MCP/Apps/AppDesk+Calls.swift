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
            return Self.result(saying: await refusal(of: call.tool, at: id, error), code: "refused")
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
        let reply: AppReply
        do {
            reply = try await reach(request, at: id, for: caller, wait: wait)
        } catch AppFailure.unclear(let id, let what) {
            // It has answered something, so it has got the call.
            throw AppFailure.unclear(id, "\(what) (delivered, result unknown)")
        }
        return await trim(try reply.outcome.get(), maxPixels, caller)
    }

    /// What an app's own error is about; one about a tool that the app does not list is about that, whatever its words.
    private func refusal(of tool: String, at id: EndpointID, _ error: RPCError) async -> String {
        let isAboutNames = [RPCError.unknownMethod("").code, RPCError.invalidParams("").code].contains(error.code)
        guard isAboutNames, let tools = await shelvedList(AppRecord.tools, of: id)?["tools"]?.array,
            !tools.contains(where: { $0["name"]?.string == tool })
        else { return "\(id) refused the call (error \(error.code)): \(error.message)" }
        let said = "error \(error.code): \(Untrusted(error.message, limit: 500))"
        return """
            \(id) has no tool "\(Untrusted(tool, limit: 128))" (\(said)); endpoint_tools lists those it has, for a person \
            `patchbay tools \(id)` does
            """
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
