import JSON

/// The six tools. Their list is constant, because clients put the list into every prompt and many never read it again.
enum BrokerTool: String, CaseIterable, Sendable {
    case list = "endpoint_list"
    case tools = "endpoint_tools"
    case call = "endpoint_call"
    case pair = "endpoint_pair"
    case wait = "endpoint_wait"
    case forward = "port_forward"

    /// The names of the arguments.
    var arguments: Set<String> { Set(schema.members.map(\.name)) }

    static let definitions = JSON.array(allCases.map(\.definition))

    private var definition: JSON {
        var input: JSONObject = ["type": "object", "properties": .object(schema)]
        if !required.isEmpty { input["required"] = .array(required.map(JSON.string)) }
        return [
            "name": .string(rawValue), "description": .string(summary), "inputSchema": .object(input),
            "annotations": .object(annotations),
        ]
    }

    private var summary: String {
        switch self {
        case .list: "Lists running apps that can be called. Start here."
        case .tools: "Lists the tools of an app; with name, the schema of one."
        case .call: "Calls a tool of an app; waits for one that restarts. Errors say what to do next."
        case .pair:
            "Says why an app cannot be called; takes the token that it logs at launch."
        case .wait:
            "Waits until an app comes, goes or restarts, as after a rebuild."
        case .forward: "Opens, lists or closes local TCP ports to apps."
        }
    }

    private var required: [String] {
        switch self {
        case .list: []
        case .tools, .pair, .wait: ["endpoint"]
        case .call: ["endpoint", "name"]
        case .forward: ["action"]
        }
    }

    private var annotations: JSONObject {
        switch self {
        case .list, .tools, .wait: ["readOnlyHint": true]
        case .call: ["openWorldHint": true]
        case .pair, .forward: ["destructiveHint": false]
        }
    }

    private var schema: JSONObject {
        func text(_ description: String) -> JSON { ["type": "string", "description": .string(description)] }
        func choice(_ choice: [JSON], _ description: String) -> JSON {
            ["type": "string", "enum": .array(choice), "description": .string(description)]
        }
        // The minimum is checked but not declared, to keep the list short.
        func number(_ maximum: Int, _ description: String) -> JSON {
            ["type": "integer", "maximum": .number(JSONNumber(maximum)), "description": .string(description)]
        }
        let endpoint = text("id, or a part that fits one")
        return switch self {
        case .list:
            [
                "endpoint": text("part of id, app, device"),
                "state": choice(["online", "offline", "any"], "default any"),
                "cursor": text("nextCursor"),
            ]
        case .tools: ["endpoint": endpoint, "name": text("one tool"), "query": text("part of name or description")]
        case .call:
            [
                "endpoint": endpoint, "name": text("tool"), "arguments": ["type": "object"],
                "waitSeconds": number(60, "for an offline app; default 10"),
                "timeoutSeconds": number(120, "total; default 15"),
                "maxPixels": number(4_096, "image edge, default 1568; 0: original"),
            ]
        case .pair: ["endpoint": endpoint, "code": text("token or Session URL")]
        case .wait:
            [
                "endpoint": text("part of id, app, device"),
                "event": choice(["online", "offline", "restarted", "changed"], "default online"),
                "timeoutSeconds": number(60, "default 30"),
            ]
        case .forward:
            [
                "action": ["enum": ["open", "list", "close"]], "endpoint": endpoint,
                "remotePort": ["type": "integer", "description": "other port of its phone"],
                "localPort": ["type": "integer", "description": "default any"], "tunnel": text("to close"),
            ]
        }
    }
}
