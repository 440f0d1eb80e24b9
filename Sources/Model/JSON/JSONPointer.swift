/// A path to a value inside a JSON document (RFC 6901), for example `/user/name`. The empty path is the document.
package struct JSONPointer: Hashable, Sendable {
    private let tokens: [String]

    /// The whole document.
    package static let root = JSONPointer(tokens: [])

    private init(tokens: [String]) { self.tokens = tokens }

    /// Parses a pointer; nil for text that does not begin with `/`, or with a `~` that escapes nothing.
    package init?(_ text: String) {
        // Scalars, because a slash before an accent is no Character of its own.
        let parts = text.unicodeScalars.split(separator: "/", omittingEmptySubsequences: false)
        guard let first = parts.first, first.isEmpty else { return nil }
        var tokens: [String] = []
        for part in parts.dropFirst() {
            guard let token = Self.unescaped(part) else { return nil }
            tokens.append(token)
        }
        self.tokens = tokens
    }

    /// Returns the pointer to a member or an element of this value.
    package func appending(_ token: String) -> JSONPointer { JSONPointer(tokens: tokens + [token]) }

    /// Returns the pointer to a value inside this value. A long path is cut.
    func appending(contentsOf path: [String]) -> JSONPointer { JSONPointer(tokens: tokens + path.prefix(16)) }

    /// Returns the value in a document; nil if there is none. `-` and indexes with leading zeros name no element.
    package func value(in document: JSON) -> JSON? {
        tokens.reduce(document as JSON?) { value, token in
            switch value {
            case .object(let object)?: object[token]
            case .array(let elements)?:
                Int(token).flatMap { "\($0)" == token && elements.indices.contains($0) ? elements[$0] : nil }
            default: nil
            }
        }
    }

    private static func unescaped(_ part: Substring.UnicodeScalarView) -> String? {
        var token = String.UnicodeScalarView()
        var isEscape = false
        for scalar in part {
            switch (isEscape, scalar) {
            case (true, "0"): token.append("~")
            case (true, "1"): token.append("/")
            case (true, _): return nil
            case (false, "~"): break
            case (false, _): token.append(scalar)
            }
            isEscape = !isEscape && scalar == "~"
        }
        return isEscape ? nil : String(token)
    }
}

extension JSONPointer: CustomStringConvertible {
    package var description: String {
        tokens.map { token in
            let escaped = token.unicodeScalars.map { scalar in
                switch scalar {
                case "~": "~0"
                case "/": "~1"
                default: String(scalar)
                }
            }
            return "/\(escaped.joined())"
        }.joined()
    }
}
