import Model

/// The tools that the bridge itself serves.
enum BridgeTool {
    /// Reports what is missing. Listed while the broker or the app is not available.
    static let status = "patchbay_status"
    /// Chooses a phone. Listed with `--app` while several phones have the app.
    static let choose = "patchbay_choose_endpoint"

    static let statusDefinition: JSON = [
        "name": .string(status), "title": "What is missing",
        "description": "The tools of this server are not available now. Returns the reason and the next step.",
        "inputSchema": ["type": "object"], "annotations": ["readOnlyHint": true],
    ]

    /// The definition of `choose` for these endpoints.
    static func chooseDefinition(_ candidates: [Endpoint]) -> JSON {
        let lines = candidates.map { "\($0.choiceLine)" }.joined(separator: "; ")
        return [
            "name": .string(choose), "title": "Choose a phone",
            "description": .string("Chooses the phone for all further calls of this session. Endpoints: \(lines)."),
            "inputSchema": [
                "type": "object",
                "properties": [
                    "endpoint": ["type": "string", "enum": .array(candidates.map { .string($0.id.text) })]
                ],
                "required": ["endpoint"],
            ],
        ]
    }

    /// Returns a response to `tools/list` with the tool `choose` added.
    static func adding(_ candidates: [Endpoint], to response: JSON) -> JSON {
        guard var object = response.object, var result = object["result"]?.object, let tools = result["tools"]?.array
        else { return response }
        result["tools"] = .array(tools + [chooseDefinition(candidates)])
        object["result"] = .object(result)
        return .object(object)
    }
}

/// Answers requests while the broker or the app is not available, so that the client keeps the server.
enum BridgeServer {
    /// The protocol versions with a handshake. The broker supports the same.
    private static let versions = ["2025-11-25", "2025-06-18", "2025-03-26", "2024-11-05"]
    private static let statelessVersion = "2026-07-28"
    private static let info: JSON = ["name": "patchbay", "version": .string(Version.text)]
    private static let capabilities: JSON = ["tools": ["listChanged": true]]

    /// Returns the response to a request that cannot be delivered; nil for a request without a meaningful response.
    static func response(to message: ClientMessage, because failure: CLIError) -> JSON? {
        guard let id = message.id else { return nil }
        switch message.method {
        case "initialize":
            let wanted = message.params?["protocolVersion"]?.string ?? ""
            let version = versions.contains(wanted) ? wanted : versions[0]
            return response(
                id,
                [
                    "protocolVersion": .string(version), "capabilities": capabilities, "serverInfo": info,
                    "instructions": .string(instructions(failure)),
                ],
                to: message
            )
        case "server/discover":
            let supported = ([statelessVersion] + versions).map { JSON.string($0) }
            return response(
                id,
                [
                    "supportedVersions": .array(supported), "capabilities": capabilities,
                    "instructions": .string(instructions(failure)),
                ],
                to: message
            )
        case "ping": return response(id, [:], to: message)
        case "tools/list": return response(id, ["tools": [BridgeTool.statusDefinition]], to: message)
        case "tools/call": return result(id, of: failure, to: message)
        default: return nil
        }
    }

    /// The result of a tool call that failed before it reached an app. Models read results, and not protocol errors.
    static func result(_ id: JSON, of failure: CLIError, to message: ClientMessage) -> JSON {
        var structure: JSONObject = ["code": .string(failure.status.code), "reason": .string(failure.message)]
        if !failure.candidates.isEmpty { structure["candidates"] = .array(failure.candidates.map(JSON.string)) }
        structure["try"] = failure.hint.map(JSON.string)
        return response(
            id,
            [
                "content": [["type": "text", "text": .string(text(of: failure))]],
                "structuredContent": .object(structure), "isError": true,
            ],
            to: message
        )
    }

    /// The notification that the tools have changed; `subscription` is the ID of a subscription of MCP 2026-07-28.
    static func toolsChanged(subscription: JSON? = nil) -> JSON {
        var notification: JSONObject = ["jsonrpc": "2.0", "method": "notifications/tools/list_changed"]
        notification["params"] = subscription.map { ["_meta": ["io.modelcontextprotocol/subscriptionId": $0]] }
        return .object(notification)
    }

    /// The result of a tool of the bridge.
    static func result(_ id: JSON, _ text: String, to message: ClientMessage) -> JSON {
        response(id, ["content": [["type": "text", "text": .string(text)]]], to: message)
    }

    /// The reason, the candidates and the next step.
    static func text(of failure: CLIError) -> String {
        ([failure.message] + failure.candidates.map { "  \($0)" } + (failure.hint.map { ["try: \($0)"] } ?? []))
            .joined(separator: "\n")
    }

    private static func instructions(_ failure: CLIError) -> String {
        "The tools are not available yet. They appear without a restart of the client.\n\(text(of: failure))"
    }

    private static func response(_ id: JSON, _ result: JSONObject, to message: ClientMessage) -> JSON {
        var result = result
        if message.revision != nil {
            result["resultType"] = "complete"
            if message.method != "tools/call" { (result["ttlMs"], result["cacheScope"]) = (0, "private") }
            result["_meta"] = ["io.modelcontextprotocol/serverInfo": info]
        }
        return ["jsonrpc": "2.0", "id": id, "result": .object(result)]
    }
}
