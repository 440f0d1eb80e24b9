import JSON
import Model

/// `endpoint_tools` and `endpoint_call`: what an app can do, and doing it.
extension BrokerMCPServer {
    func tools(_ arguments: ToolArguments, _ caller: AgentCaller) async throws(ToolError) -> ToolResult {
        try check(.endpointCall, caller)
        let endpoint = try await endpoint(try arguments.required("endpoint"), caller)
        let list: CachedToolList
        do { list = try await apps.tools(of: endpoint, for: caller) } catch {
            throw ToolError(error.sentence(for: .agent))
        }
        var structure: JSONObject = ["endpoint": .string(endpoint.id.text)]
        if let staleness = list.staleness {
            structure["stale"] = true
            structure["reason"] = .string(staleness.sentence(for: .agent))
        }
        if list.hasChanged { structure["changed"] = true }
        if let name = try arguments.text("name") {
            guard let tool = list.tools.first(where: { $0["name"]?.string == name }) else {
                let near = NearTools(name, list.tools)
                throw ToolError(
                    "\(endpoint.id) has no tool \"\(SanitizedText(name))\"\(near): endpoint_tools without name lists them"
                )
            }
            let cleaned = DisplayTextSanitizer.cleaned(.object(tool))
            structure["tool"] = cleaned
            return ToolResult(cleaned.text, structure)
        }
        let query = try arguments.text("query")?.lowercased() ?? ""
        let hints = list.tools.map(ToolSummary.init).filter { $0.fits(query) }
        structure["tools"] = .array(hints.map(\.json))
        guard !hints.isEmpty else {
            return ToolResult(list.tools.isEmpty ? "it has no tools" : "no tool fits the query", structure)
        }
        var lines = hints.map(\.line)
        if let staleness = list.staleness {
            lines.insert("\(staleness.sentence(for: .agent)); this is what it offered last", at: 0)
        }
        if list.hasChanged { lines.insert("these are other tools than at the last look", at: 0) }
        return ToolResult(lines.joined(separator: "\n"), structure)
    }

    func call(
        _ arguments: ToolArguments,
        _ caller: AgentCaller,
        notify: (@Sendable (RPCNotification) -> Void)?
    ) async throws(ToolError) -> JSONObject {
        try check(.endpointCall, caller)
        let endpoint = try await endpoint(try arguments.required("endpoint"), caller)
        let call = ToolCall(
            try arguments.required("name"),
            of: endpoint,
            arguments: try arguments.object("arguments") ?? [:],
            wait: .seconds(try arguments.number("wait_s", in: 0...60) ?? 10),
            patience: try arguments.number("timeout_s", in: 1...120).map { .seconds($0) },
            maxPixels: try arguments.number("max_px", in: 0...4_096) ?? 1_568,
            notify: notify
        )
        do { return try await apps.call(call, of: caller) } catch { return error.result(for: .agent) }
    }
}
