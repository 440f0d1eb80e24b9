import JSON
import Model

/// An app's tool as it stands in the list of all apps' tools: whose it is comes first, and what the app wrote is kept short.
enum AggregatedTool {
    static let descriptionLimit = 160
    /// Of a schema, in bytes; a longer one is left out, the app checks its arguments itself.
    private static let schemaLimit = 16 * 1_024

    static func make(of tool: JSONObject, on endpoint: Endpoint, alias: String) -> JSONObject? {
        guard let name = tool["name"]?.string else { return nil }
        let place =
            endpoint.place.host.map { " on \($0.text)" } ?? endpoint.place.udid.map { " on phone \($0.text.suffix(6))" }
            ?? ""
        let app = endpoint.app.isEmpty ? endpoint.name : endpoint.app
        let text = "[\(SanitizedText("\(app.text)\(place)", limit: 80))] \(tool["description"]?.string ?? name)"
        var listed: JSONObject = [
            "name": .string(ToolNamespace.name(of: name, alias: alias)),
            "description": .string(cut(SanitizedText(text, limit: 1_024).text)),
            "inputSchema": schema(tool["inputSchema"]) ?? ["type": "object"],
        ]
        listed["outputSchema"] = schema(tool["outputSchema"])
        listed["annotations"] = annotations(tool["annotations"])
        return listed
    }

    private static func cut(_ text: String) -> String {
        text.count <= descriptionLimit ? text : "\(text.prefix(descriptionLimit - 1))…"
    }

    static func schema(_ schema: JSON?) -> JSON? {
        guard let schema, schema.object != nil, schema.bytes.count <= schemaLimit else { return nil }
        return schema
    }

    /// Truth values only: a title is a text, and may say anything.
    private static func annotations(_ annotations: JSON?) -> JSON? {
        let hints = annotations?.object?.members.filter { $0.value.bool != nil } ?? []
        return hints.isEmpty ? nil : .object(JSONObject(hints))
    }
}
