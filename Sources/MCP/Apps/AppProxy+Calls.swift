package import JSON
import Model
import SystemIO

/// Calling apps' tools.
extension AppProxy {
    package func call(_ call: ToolCall, of caller: AgentCaller) async throws(AppError) -> JSONObject {
        let params: JSONObject = ["name": .string(call.tool), "arguments": .object(call.arguments)]
        let request = MCPRequest("tools/call", params, patience: call.patience, notify: call.notify)
        let id = call.endpoint.id
        do {
            let result = try await self.call(request, at: id, for: caller, wait: call.wait, maxPixels: call.maxPixels)
            return await hinted(result, call.tool, at: id, for: caller)
        } catch let error as RPCError {
            return Self.result(saying: await refusal(of: call.tool, at: id, error, caller), code: "refused")
        } catch {
            throw Self.failure(error, id)
        }
    }

    /// - Throws: `AppError`, an `RPCError` of the app's own, `CancellationError`.
    func call(
        _ request: MCPRequest,
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
        } catch AppError.unclear(let id, let what) {
            // It has answered something, so it has got the call.
            throw AppError.unclear(id, "\(what) (delivered, result unknown)")
        }
        defer { reply.permit?.giveBack() }
        return await trim(try reply.outcome.get(), maxPixels, caller)
    }

    /// What an app's own error is about; one about a tool that the app does not list is about that, whatever its words.
    private func refusal(
        of tool: String,
        at id: EndpointID,
        _ error: RPCError,
        _ caller: AgentCaller
    ) async -> String {
        guard error.isAboutNames, let near = await absence(of: tool, at: id, for: caller) else {
            return "\(id) refused the call (error \(error.code)): \(error.message)"
        }
        let said = "error \(error.code): \(SanitizedText(error.message, limit: 500))"
        return """
            \(id) has no tool "\(SanitizedText(tool, limit: 128))" (\(said))\(near); endpoint_tools lists those it has, \
            for a person `patchbay tools \(id)` does
            """
    }

    /// The result, and where it says that a tool failed which the app does not list, the names that may be meant.
    func hinted(
        _ result: JSONObject,
        _ tool: String,
        at id: EndpointID,
        for caller: AgentCaller,
        alias: String? = nil
    ) async -> JSONObject {
        guard result["isError"] == true, let content = result["content"]?.array,
            let near = await absence(of: tool, at: id, for: caller, alias: alias), !near.isEmpty
        else { return result }
        let hint = "\(id) has no tool \"\(SanitizedText(tool, limit: 128))\"\(near)"
        var result = result
        result["content"] = .array(content + [["type": "text", "text": .string(hint)]])
        return result
    }

    /// The nearest names of a tool that the app does not list; nil where it lists it, or cannot be asked.
    func absence(
        of tool: String,
        at id: EndpointID,
        for caller: AgentCaller,
        alias: String? = nil
    ) async -> NearTools? {
        func has(_ list: JSONObject) -> Bool {
            list["tools"]?.array?.contains { $0["name"]?.string == tool } ?? false
        }
        if let shelved = await shelvedList(CachedApp.tools, of: id), has(shelved) { return nil }
        // It may have got the tool since.
        guard let list = try? await list(CachedApp.tools, of: id, for: caller, within: limits.list).result, !has(list)
        else { return nil }
        return NearTools(tool, list["tools"]?.array?.compactMap(\.object) ?? [], alias: alias)
    }

    private func offersJPEG(_ request: MCPRequest, _ id: EndpointID) async -> Bool {
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
