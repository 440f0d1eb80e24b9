import FoundationEssentials

/// A text on its way into one of MCP's HTTP headers.
enum HeaderValue {
    /// MCP 2026-07-28, transports: what is no printable ASCII, begins or ends with a blank, or looks like the escape itself
    /// goes as `=?base64?…?=`.
    static func encode(_ text: String) -> String {
        let isPlain =
            text.utf8.allSatisfy { (0x20...0x7E).contains($0) } && !text.isEmpty && !text.hasPrefix(" ")
            && !text.hasSuffix(" ") && !text.lowercased().hasPrefix("=?base64?")
        return isPlain ? text : "=?base64?\(Data(text.utf8).base64EncodedString())?="
    }

    /// Whether a text that an app gave us may go back to it as it is: visible ASCII (MCP, session ids).
    static func isVisible(_ text: String) -> Bool {
        (1...1_024).contains(text.utf8.count) && text.utf8.allSatisfy { (0x21...0x7E).contains($0) }
    }
}
