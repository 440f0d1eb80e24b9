import JSON
import Model

/// The tools of an app that a wrong name may stand for, as the end of a sentence about it.
struct NearTools: Hashable, Sendable, CustomStringConvertible {
    private let names: [String]

    var isEmpty: Bool { names.isEmpty }

    /// An alias is what the names begin with where the caller sees the tools of several apps.
    init(_ name: String, _ tools: [JSONObject], alias: String? = nil) {
        names = NearNames.of(name, among: tools.compactMap { $0["name"]?.string }).map { name in
            SanitizedText(alias.map { ToolNamespace.name(of: name, alias: $0) } ?? name, limit: 128).text
        }
    }

    var description: String { names.isEmpty ? "" : "; the nearest names are \(names.joined(separator: ", "))" }
}

extension RPCError {
    /// Whether it may be about a tool's name.
    var isAboutNames: Bool { [-32_601, -32_602].contains(code) }
}

extension MCPRequest {
    /// With arguments that were given as a JSON text as the object that they hold.
    var withArgumentsAsObject: MCPRequest {
        guard let given = params["arguments"], given.object == nil, let arguments = given.objectOrText else {
            return self
        }
        var params = params
        params["arguments"] = .object(arguments)
        return with(params)
    }
}
