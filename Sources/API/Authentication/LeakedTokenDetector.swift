import AccessControl
import HTTPTypes
import Model

/// Finds tokens in URLs and cookies. URLs are stored in histories and logs, and any page can make a browser send
/// cookies.
enum LeakedTokenDetector {
    /// - Returns: Nil if nothing resembles a token; otherwise the tokens with a valid format, possibly none.
    static func find(in request: HTTPRequest) -> [Token]? {
        let sources = [request.path ?? ""] + request.headerFields[values: .cookie]
        var found: [Token]?
        for source in sources {
            for text in Set([source, percentDecoded(source)]) {
                guard let tokens = find(in: text) else { continue }
                found = (found ?? []) + tokens
            }
        }
        return found
    }

    /// Removes percent-encoding (RFC 3986, section 2.1). Invalid sequences stay as they are.
    static func percentDecoded(_ text: String) -> String {
        var bytes: [UInt8] = []
        var rest = Array(text.utf8)[...]
        while let byte = rest.popFirst() {
            let digits = rest.prefix(2)
            if byte == UInt8(ascii: "%"), digits.count == 2,
                let code = UInt8(String(decoding: digits, as: UTF8.self), radix: 16)
            {
                bytes.append(code)
                rest = rest.dropFirst(2)
            } else {
                bytes.append(byte)
            }
        }
        return String(decoding: bytes, as: UTF8.self)
    }

    /// Finds every text that begins like a token with an ID. A mistyped token counts, because the text contains most of
    /// a secret.
    static func find(in text: String) -> [Token]? {
        var found: [Token]?
        // Compares bytes: in a Character, a combining character (U+0600, U+0301) would hide the letter beside it.
        var rest = Array(text.utf8)[...]
        while let start = rest.firstIndex(of: UInt8(ascii: "p")) {
            let candidate = rest[start...]
            rest = candidate.dropFirst()
            guard let kind = Token.Kind.allCases.first(where: { candidate.starts(with: "\($0.rawValue)_".utf8) }) else {
                continue
            }
            let id = candidate.dropFirst(4).prefix(9)
            guard id.count == 9, id.last == UInt8(ascii: "_"), id.dropLast().allSatisfy(Base62.contains) else {
                continue
            }
            let token = try? Token(String(decoding: candidate.prefix(kind.length), as: UTF8.self))
            found = (found ?? []) + [token].compactMap { $0 }
        }
        return found
    }
}
