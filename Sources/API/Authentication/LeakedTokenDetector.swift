import AccessControl
import HTTPTypes
import Model

/// Finds tokens where they do not belong: an address is kept in histories and logs, a cookie is sent by any page.
enum LeakedTokenDetector {
    /// - Returns: Nil when there is nothing like a token; else those that have the form of one.
    static func find(in request: HTTPRequest) -> [Token]? {
        let places = [request.path ?? ""] + request.headerFields[values: .cookie]
        var found: [Token]?
        for place in places {
            for text in Set([place, decoded(place)]) {
                guard let tokens = find(in: text) else { continue }
                found = (found ?? []) + tokens
            }
        }
        return found
    }

    /// Without its percent-encoding (RFC 3986, section 2.1); what is none stays as it is.
    static func decoded(_ text: String) -> String {
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

    /// What begins like a token with its id counts, also when the rest is mistyped: most of a secret is in it.
    static func find(in text: String) -> [Token]? {
        var found: [Token]?
        // In bytes: a sign that joins the one beside it (U+0600, U+0301) would hide a letter in a Character.
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
