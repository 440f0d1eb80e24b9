import JSON

/// Server-sent events (WHATWG HTML, section 9.2) as MCP uses them: one message each, which is one line.
enum SSEEncoder {
    static func message(_ json: JSON) -> [UInt8] {
        var bytes = Array("event: message\ndata: ".utf8)
        json.append(to: &bytes)
        bytes += "\n\n".utf8
        return bytes
    }

    /// A comment, which keeps a quiet stream from being closed.
    static let comment = Array(":\n\n".utf8)

    /// How soon a reader comes back after its stream has ended, in milliseconds.
    static let retry = Array("retry: 500\n\n".utf8)
}
