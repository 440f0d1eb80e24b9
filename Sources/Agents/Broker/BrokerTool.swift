import AccessControl
import Apps
import Model

/// A tool of the broker.
protocol BrokerTool: Sendable {
    var definition: ToolDefinition { get }

    /// Runs the tool for a principal that has the scope of the definition.
    func call(_ request: ToolRequest, for principal: Principal) async throws(ToolError) -> ToolResult
}

extension BrokerTool {
    /// Checks the arguments and the principal's scope, and calls the tool.
    ///
    /// - Returns: A `CallToolResult`; an error of the tool is a result with `isError`.
    func answer(_ request: MCPRequest, for principal: Principal) async -> JSONObject {
        do throws(ToolError) {
            let request = try ToolRequest(request, for: definition)
            guard principal.may(definition.scope) else {
                throw ToolError(
                    """
                    your grant does not allow \(definition.scope.rawValue)\(principal.exclusion(of: definition.scope)); \
                    ask the person who invited you for a grant that does
                    """
                )
            }
            return try await call(request, for: principal).json
        } catch {
            return ToolResult(error).json
        }
    }
}

/// The definition of a tool: its entry in `tools/list`, and the scope that it requires.
struct ToolDefinition: Sendable {
    let name: String
    let scope: Scope
    /// The schemas of the parameters by name.
    let properties: JSONObject
    /// The schema of the arguments.
    let schema: JSONSchemaNode
    /// The definition as `tools/list` returns it.
    let json: JSON

    init(
        name: String,
        description: String,
        scope: Scope,
        required: [JSONObject.Member] = [],
        optional: [JSONObject.Member],
        annotations: JSONObject
    ) {
        self.name = name
        self.scope = scope
        properties = JSONObject(required + optional)
        var schema: JSONObject = ["type": "object", "properties": .object(properties)]
        if !required.isEmpty { schema["required"] = .array(required.map { .string($0.name) }) }
        self.schema = JSONSchemaNode(.object(schema))
        json = [
            "name": .string(name), "description": .string(description), "inputSchema": .object(schema),
            "annotations": .object(annotations),
        ]
    }
}

/// The result of a tool.
struct ToolResult: Sendable {
    /// The result as `tools/call` returns it.
    let json: JSONObject

    /// Creates a result with the same data as text and as structured content.
    init(_ text: String, _ structure: JSONObject) {
        json = ["content": Self.content(text), "structuredContent": .object(structure)]
    }

    init(_ error: ToolError) { json = ["content": Self.content(error.description), "isError": true] }

    /// Creates a result from the result of an app, which stays unchanged.
    init(forwarding json: JSONObject) { self.json = json }

    private static func content(_ text: String) -> JSON { [["type": "text", "text": .string(text)]] }
}

/// The reason why a tool failed, and the next step.
///
/// The principal gets a result with `isError` instead of a protocol error, so that the model can read the reason.
struct ToolError: Error, Hashable, CustomStringConvertible {
    let description: String

    init(_ description: String) { self.description = description }
}
