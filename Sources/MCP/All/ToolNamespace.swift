import Crypto
import Model

/// The names of apps' tools where all are listed together: `<alias>__<tool>`.
///
/// Letters, digits, `_` and `-`, at most 48 of them: clients put their own prefix before it and have limits of 60 or 64.
/// What had to be changed or cut ends with four hexadecimal digits of the whole, so that two tools never get one name.
enum ToolNamespace {
    static let limit = 48
    static let aliasLimit = 16
    static let separator = "__"

    /// An id has no `_`, so that the first two of them end the alias.
    static func alias(of id: EndpointID) -> String { fit(id.text, aliasLimit) }

    static func name(of tool: String, alias: String) -> String {
        "\(alias)\(separator)\(fit(tool, limit - alias.utf8.count - separator.utf8.count))"
    }

    /// - Returns: Nil when it is no such name.
    static func parts(of name: String) -> (alias: String, tool: String)? {
        guard let range = name.firstRange(of: separator), range.lowerBound > name.startIndex,
            range.upperBound < name.endIndex
        else { return nil }
        return (String(name[..<range.lowerBound]), String(name[range.upperBound...]))
    }

    private static func fit(_ text: String, _ limit: Int) -> String {
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
