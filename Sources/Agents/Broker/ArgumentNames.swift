import Apps
import Model

/// The names that agents use in place of the names of parameters.
enum ArgumentNames {
    /// Names with one meaning, in lower case and without punctuation. An argument with such a name is accepted.
    private static let synonyms = [
        "id": "endpoint", "endpointid": "endpoint", "app": "endpoint", "filter": "endpoint", "tool": "name",
        "toolname": "name", "args": "arguments", "params": "arguments", "parameters": "arguments",
        "input": "arguments", "toolinput": "arguments", "toolarguments": "arguments", "token": "code",
        "secret": "code", "tunnelid": "tunnel",
    ]
    /// Names that may have another unit or meaning. The error names the parameter.
    private static let hints = [
        "timeout": "timeoutSeconds", "timeoutms": "timeoutSeconds", "wait": "waitSeconds", "waitms": "waitSeconds",
        "seconds": "timeoutSeconds", "maxsize": "maxPixels", "size": "maxPixels", "page": "cursor",
    ]

    /// Returns the arguments under the names of the tool's parameters.
    ///
    /// - Throws: `ToolError` for an unknown name, with the parameter that was meant.
    static func resolved(_ arguments: JSONObject, for tool: ToolDefinition) throws(ToolError) -> JSONObject {
        var resolved: JSONObject = [:]
        for argument in arguments.members where tool.properties[argument.name] != nil {
            resolved[argument.name] = argument.value
        }
        for argument in arguments.members where tool.properties[argument.name] == nil {
            guard let name = parameter(meantBy: argument.name, in: tool), resolved[name] == nil else {
                throw unknown(argument, among: arguments, for: tool)
            }
            resolved[name] = argument.value
        }
        return resolved
    }

    /// Returns the parameter that a name can only mean; nil if there is none.
    private static func parameter(meantBy name: String, in tool: ToolDefinition) -> String? {
        let shape = shape(name)
        if let equal = tool.properties.members.first(where: { Self.shape($0.name) == shape }) { return equal.name }
        // The ID may be that of a tunnel.
        if shape == "id", tool.properties["tunnel"] != nil { return nil }
        return synonyms[shape].flatMap { tool.properties[$0] == nil ? nil : $0 }
    }

    private static func unknown(
        _ argument: JSONObject.Member,
        among arguments: JSONObject,
        for tool: ToolDefinition
    ) -> ToolError {
        let names = tool.properties.members.map(\.name)
        let unused = names.filter { arguments[$0] == nil }
        let hint = hints[shape(argument.name)].flatMap { unused.contains($0) ? $0 : nil }
        let end =
            hint.map { "; did you mean \"\($0)\"?" }
            ?? SimilarNameFinder.suggestion(for: argument.name, among: unused.sorted(), listedAs: "other arguments")
        let text = "unknown argument \"\(SanitizedText(argument.name, limit: 40))\"\(end)"
        guard tool.properties["arguments"] != nil else { return ToolError(text) }
        let example = JSON.object(JSONObject([argument])).text
        let inner = example.utf8.count <= 200 ? example : "{…}"
        return ToolError(
            "\(text); the arguments of the app's own tool belong inside \"arguments\": {\"arguments\": \(inner)}"
        )
    }

    private static func shape(_ name: String) -> String {
        name.lowercased().filter { $0.isLetter || $0.isNumber }
    }
}
