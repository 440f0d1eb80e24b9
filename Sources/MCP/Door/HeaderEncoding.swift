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
