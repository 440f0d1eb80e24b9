package import Model

extension JSONObject {
    /// Returns a tool result with `isError` and a machine-readable code.
    package static func toolFailure(_ text: String, code: String) -> JSONObject {
        [
            "content": [["type": "text", "text": .string(text)]], "isError": true,
            "_meta": ["patchbay/failure": .string(code)],
        ]
    }
}
