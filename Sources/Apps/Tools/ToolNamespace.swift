import Crypto
import Model

/// Names of tools in the aggregated list: `<alias>__<tool>`.
///
/// A name has at most 48 letters, digits, `_` and `-`: clients add a prefix and have limits of 60 or 64. A changed or
/// truncated name ends with four hexadecimal digits of a hash of the original name.
enum ToolNamespace {
    static let limit = 48
    static let aliasLimit = 16
    static let separator = "__"
    /// The member of a tool's `_meta` with the app's own name of a tool that is listed under a safe name.
    static let originalNameKey = "patchbay/name"
    /// The length limit of a tool's name (MCP 2025-11-25, tools), in bytes of UTF-8, and that of a safe name.
    private static let (nameLimit, safeNameLimit) = (128, 64)

    /// Returns the name under which an app lists a tool. Clients refuse a name that is too long or has invisible characters.
    static func safeName(of tool: String) -> String {
        SanitizedText(tool, limit: nameLimit).text == tool ? tool : fitted(tool, to: safeNameLimit)
    }

    /// Returns an endpoint's alias. An endpoint ID has no `_`, so the first `__` ends the alias.
    static func alias(of id: EndpointID) -> String { fitted(id.text, to: aliasLimit) }

    /// Returns the aggregated name of a tool.
    static func name(of tool: String, alias: String) -> String {
        "\(alias)\(separator)\(fitted(tool, to: limit - alias.utf8.count - separator.utf8.count))"
    }

    /// Splits an aggregated name into alias and tool.
    ///
    /// - Returns: Nil if the name is not an aggregated name.
    static func parts(of name: String) -> (alias: String, tool: String)? {
        guard let range = name.firstRange(of: separator), range.lowerBound > name.startIndex,
            range.upperBound < name.endIndex
        else { return nil }
        return (String(name[..<range.lowerBound]), String(name[range.upperBound...]))
    }

    private static func fitted(_ text: String, to limit: Int) -> String {
        let safe = String(text.map { character in isSafe(character) ? character : "_" })
        if safe == text, text.utf8.count <= limit, !text.isEmpty { return text }
        let hash = SHA256.hash(data: Array(text.utf8)).prefix(2).map { byte in
            byte < 16 ? "0" + String(byte, radix: 16) : String(byte, radix: 16)
        }
        return "\(safe.prefix(limit - 5))-\(hash.joined())"
    }

    private static func isSafe(_ character: Character) -> Bool {
        character.isASCII && (character.isLetter || character.isNumber || character == "_" || character == "-")
    }
}
