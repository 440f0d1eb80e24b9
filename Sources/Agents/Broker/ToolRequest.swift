import Apps
import Model

/// A request to call one of the broker's tools.
struct ToolRequest: Sendable {
    /// Forwards notifications of an app to the client while the tool runs; nil if the client asked for none.
    let notify: (@Sendable (RPCNotification) -> Void)?
    /// The program of the client, as it calls itself; nil if it gives no name.
    let agent: SanitizedText?
    let trace: CallTrace
    private let arguments: JSONObject

    /// Parses the arguments. An argument under another name with the same meaning is accepted, and one of another type that
    /// the schema makes unambiguous. Other unknown arguments are rejected, because a misspelled one would otherwise be
    /// ignored.
    init(_ request: MCPRequest, for tool: ToolDefinition) throws(ToolError) {
        let arguments: JSONObject
        let given = request.params["arguments"] ?? [:]
        do { arguments = given.isNull ? [:] : try given.objectOrParsed() } catch {
            throw ToolError("the value of arguments \(error)")
        }
        let resolved = try ArgumentNames.resolved(arguments, for: tool)
        self.arguments = tool.schema.converted(.object(resolved)).value.object ?? resolved
        notify = request.notify
        agent = request.agent
        trace = request.trace
    }

    /// The argument of a parameter; nil if it is absent or null.
    subscript<Value>(_ parameter: ToolParameter<Value>) -> Value? {
        get throws(ToolError) {
            guard let argument = arguments[parameter.name], !argument.isNull else { return nil }
            return try parameter.parse(argument)
        }
    }

    /// Returns an argument that must have at least one character.
    func required(_ parameter: ToolParameter<String>) throws(ToolError) -> String {
        guard let text = try self[parameter], !text.isEmpty else { throw ToolError("\(parameter.name) is missing") }
        return text
    }
}
