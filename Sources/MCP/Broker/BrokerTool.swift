import JSON

/// The six tools. Their list never changes: clients put it into every prompt, and many never ask for it again.
enum BrokerTool: String, CaseIterable, Sendable {
    case list = "endpoint_list"
    case tools = "endpoint_tools"
    case call = "endpoint_call"
    case pair = "endpoint_pair"
    case wait = "endpoint_wait"
    case forward = "port_forward"

    /// The arguments that it takes.
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
        func text(_ what: String) -> JSON { ["type": "string", "description": .string(what)] }
        func words(_ words: [JSON], _ what: String) -> JSON {
            ["type": "string", "enum": .array(words), "description": .string(what)]
        }
        // The least that it may be is left out, to be brief: that is plain, and checked.
        func number(_ most: Int, _ what: String) -> JSON {
            ["type": "integer", "maximum": .number(JSONNumber(most)), "description": .string(what)]
        }
        let endpoint = text("id, or a part that fits one")
        return switch self {
        case .list:
            [
                "endpoint": text("part of id, app, device"),
                "state": words(["online", "offline", "any"], "default any"),
                "cursor": text("of the answer before"),
            ]
        case .tools: ["endpoint": endpoint, "name": text("one tool"), "query": text("part of name or description")]
        case .call:
            [
                "endpoint": endpoint, "name": text("tool"), "arguments": ["type": "object"],
                "wait_s": number(60, "for an app that is away; default 10"),
                "timeout_s": number(120, "in all; default 15"),
                "max_px": number(4_096, "edge of images, default 1568; 0: original"),
            ]
        case .pair: ["endpoint": endpoint, "code": text("token or Session URL")]
        case .wait:
            [
                "endpoint": text("part of id, app, device"),
                "event": words(["online", "offline", "restarted", "changed"], "default online"),
                "timeout_s": number(60, "default 30"),
            ]
        case .forward:
            [
                "action": ["enum": ["open", "list", "close"]], "endpoint": endpoint,
                "remote_port": ["type": "integer", "description": "another one of its phone"],
                "local_port": ["type": "integer", "description": "default any"], "tunnel": text("to close"),
            ]
        }
    }
}
