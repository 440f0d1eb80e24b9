import Model

/// An MCP tool of each connected app.
enum DebugTool: String, CaseIterable, Sendable {
    case states
    case state
    case diff
    case shot
    case sendState = "send_state"

    /// A parameter of a tool.
    struct Parameter {
        let name: String
        let type: String
        let description: String
        var isRequired = false
    }

    /// The declaration of the tool for `tools/list`.
    var definition: JSON {
        let properties = parameters.map { parameter in
            let schema: JSON = ["type": .string(parameter.type), "description": .string(parameter.description)]
            return JSONObject.Member(name: parameter.name, value: schema)
        }
        let required = parameters.filter(\.isRequired).map { JSON.string($0.name) }
        return [
            "name": .string(rawValue), "description": .string(description),
            "inputSchema": [
                "type": "object", "properties": .object(JSONObject(properties)), "required": .array(required),
                "additionalProperties": false,
            ],
            "annotations": ["readOnlyHint": .bool(self != .sendState), "openWorldHint": false],
        ]
    }

    var parameters: [Parameter] {
        self == .sendState ? ownParameters : ownParameters + [Self.previous]
    }

    private static let previous = Parameter(
        name: "previous",
        type: "boolean",
        description: "true reads the states of the app's last launch that has ended, for example after a crash"
    )

    private var ownParameters: [Parameter] {
        switch self {
        case .states: []
        case .state:
            [
                Parameter(name: "number", type: "integer", description: "the state's number; default: the newest"),
                Parameter(name: "pointer", type: "string", description: "a JSON pointer to one value, such as /user"),
                Parameter(
                    name: "limit",
                    type: "integer",
                    description: "the maximum size in bytes, 1 to \(DebugToolCall.stateLimit); default: "
                        + "\(DebugToolCall.standardStateLimit)"
                ),
            ]
        case .diff:
            [
                Parameter(name: "from", type: "integer", description: "the older state", isRequired: true),
                Parameter(name: "to", type: "integer", description: "the newer state", isRequired: true),
            ]
        case .shot:
            [
                Parameter(
                    name: "number",
                    type: "integer",
                    description: "the state's number; default: the newest state with a picture"
                )
            ]
        case .sendState:
            [Parameter(name: "number", type: "integer", description: "the state's number", isRequired: true)]
        }
    }

    private var description: String {
        switch self {
        case .states: "Lists the states that the app has sent: number, time, action, size, and if a picture is held."
        case .state: "Returns a state of the app, or one value in it, as JSON."
        case .diff: "Lists the values that differ between two states."
        case .shot: "Returns the app's picture of its screen in a state."
        case .sendState: "Sends an earlier state back to the app, which then shows it."
        }
    }
}
