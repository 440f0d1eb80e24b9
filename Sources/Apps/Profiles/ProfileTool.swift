package import Model

/// One MCP tool of a profile.
package struct ProfileTool: Hashable, Sendable {
    /// The origin of the arguments' schema.
    enum Arguments: Hashable {
        /// The profile declares the arguments, and Patchbay checks them.
        case declared(JSONSchema)
        /// The server describes and checks the arguments of its own function.
        case forwarded(schema: JSON)
    }

    package let name: String
    package let title: String?
    package let description: String
    package let timeout: Duration
    package let isReadOnly: Bool
    package let isIdempotent: Bool
    let template: RequestTemplate
    let arguments: Arguments
    let result: ResultFormat
    /// Indicates whether the response is a JSON-RPC response.
    let isRPC: Bool
    package let needsSession: Bool

    /// Indicates whether the response is an MP4 file.
    package var returnsVideo: Bool { result == .video }

    /// The tool for `tools/list`.
    package var json: JSON {
        var tool: JSONObject = ["name": .string(name)]
        tool["title"] = title.map { .string($0) }
        tool["description"] = .string(description)
        switch arguments {
        case .declared(let schema): tool["inputSchema"] = schema.json
        case .forwarded(let schema): tool["inputSchema"] = schema
        }
        tool["annotations"] = ["readOnlyHint": .bool(isReadOnly), "idempotentHint": .bool(isIdempotent)]
        return .object(tool)
    }

    /// Returns the checked arguments with defaults, by the names of the placeholders.
    func values(_ arguments: JSONObject) throws(ArgumentProblem) -> [String: JSON] {
        switch self.arguments {
        case .forwarded: return ["function": .string(name), "arguments": .object(arguments)]
        case .declared(let schema):
            if let problem = schema.problem(with: .object(arguments)) { throw ArgumentProblem(problem) }
            var values: [String: JSON] = [:]
            for property in schema.properties {
                values[property.name] = arguments[property.name] ?? property.value["default"]
            }
            return values
        }
    }
}

/// The form of a tool's result.
enum ResultFormat: Hashable {
    /// JSON, or the part of it at a pointer.
    case json(JSONSelection)
    /// The body, or the text at a pointer.
    case text(JSONPointer?)
    /// The bytes of a PNG or JPEG image.
    case image
    /// An image in base64, or a data URL, at a pointer.
    case base64Image(JSONPointer)
    /// The bytes of an MP4 file.
    case video
}

/// The part of a JSON response that a result contains.
struct JSONSelection: Hashable {
    var pointer = JSONPointer.root
    /// The argument with a pointer into that part.
    var pointerArgument: String?
    /// The maximum size in bytes.
    var limit: Int?
    /// The argument with another maximum size.
    var limitArgument: String?
}
