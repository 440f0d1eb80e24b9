package import Model

extension JSON {
    /// Returns a block of a tool's result with a text.
    package static func text(_ text: String) -> JSON { ["type": "text", "text": .string(text)] }
}

extension JSONObject {
    /// Returns the result of a tool that failed.
    package static func failure(_ reason: String) -> JSONObject { ["content": [.text(reason)], "isError": true] }
}
