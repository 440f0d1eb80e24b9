import FoundationEssentials

/// Encodes and decodes text in MCP's HTTP headers (MCP 2026-07-28, transports).
///
/// A value that a header cannot carry is written as `=?base64?…?=`; every other value is written unchanged.
package enum HeaderEncoding {
    private static let prefix = "=?base64?"
    private static let suffix = "?="

    /// Decodes a header value.
    ///
    /// Returns nil if the Base64 is invalid or not in canonical form, or if a plain value has other characters than
    /// printable ASCII and tabs.
    package static func decode(_ text: String) -> String? {
        guard text.hasPrefix(prefix), text.hasSuffix(suffix), text.utf8.count >= prefix.utf8.count + suffix.utf8.count
        else { return text.utf8.allSatisfy { (0x20...0x7E).contains($0) || $0 == 0x09 } ? text : nil }
        let code = String(text.dropFirst(prefix.count).dropLast(suffix.count))
        guard let data = Data(base64Encoded: code), data.base64EncodedString() == code else { return nil }
        return String(validating: data, as: UTF8.self)
    }
}

extension HeaderEncoding {
    /// Encodes a header value (MCP 2026-07-28, transports).
    ///
    /// The form `=?base64?…?=` is used for empty text, and for text with other characters than printable ASCII. It is also
    /// used for text that begins or ends with a space or looks like the escape itself.
    static func encode(_ text: String) -> String {
        let isPlain =
            text.utf8.allSatisfy { (0x20...0x7E).contains($0) } && !text.isEmpty && !text.hasPrefix(" ")
            && !text.hasSuffix(" ") && !text.lowercased().hasPrefix("=?base64?")
        return isPlain ? text : "=?base64?\(Data(text.utf8).base64EncodedString())?="
    }

    /// Returns whether a text from an app can be sent back in a header unchanged: 1 to 1,024 characters of visible
    /// ASCII (MCP, session IDs).
    static func isVisibleASCII(_ text: String) -> Bool {
        (1...1_024).contains(text.utf8.count) && text.utf8.allSatisfy { (0x21...0x7E).contains($0) }
    }
}
