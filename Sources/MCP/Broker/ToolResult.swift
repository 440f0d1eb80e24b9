import JSON

/// What a tool of ours gives back: the same data as lines to read and as a structure.
struct ToolResult: Sendable {
    let text: String
    let structure: JSONObject?
    var isError = false

    init(_ text: String, _ structure: JSONObject?) {
        self.text = text
        self.structure = structure
    }

    init(_ refusal: ToolError) {
        text = refusal.description
        structure = nil
        isError = true
    }

    var json: JSONObject {
        var result: JSONObject = ["content": [["type": "text", "text": .string(text)]]]
        result["structuredContent"] = structure.map(JSON.object)
        if isError { result["isError"] = true }
        return result
    }
}
