import FoundationEssentials

/// How 2026-07-28 writes a value into a header: as it is, or as `=?base64?…?=` where a header cannot carry it.
enum HeaderEncoding {
    private static let prefix = "=?base64?"
    private static let suffix = "?="

    /// Nil when it says that it is encoded and is not, or in another way than the one way there is.
    static func decode(_ text: String) -> String? {
        guard text.hasPrefix(prefix), text.hasSuffix(suffix), text.utf8.count >= prefix.utf8.count + suffix.utf8.count
        else { return text.utf8.allSatisfy { (0x20...0x7E).contains($0) || $0 == 0x09 } ? text : nil }
        let code = String(text.dropFirst(prefix.count).dropLast(suffix.count))
        guard let data = Data(base64Encoded: code), data.base64EncodedString() == code else { return nil }
        return String(validating: data, as: UTF8.self)
    }
}

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
