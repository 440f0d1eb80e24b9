import HTTPTypes
import Model
import Pairing

/// Finds tokens where they do not belong: an address is kept in histories and logs, a cookie is sent by any page.
enum ExposedTokens {
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
        var rest = Substring(text)
        while let start = rest.firstRange(of: "pb") {
            let candidate = rest[start.lowerBound...]
            rest = rest[start.upperBound...]
            guard let kind = Token.Kind.allCases.first(where: { candidate.hasPrefix("\($0.rawValue)_") }) else {
                continue
            }
            let body = candidate.dropFirst(4)
            let id = body.prefix(9)
            guard id.count == 9, id.last == "_",
                id.dropLast().allSatisfy({ $0.isASCII && ($0.isLetter || $0.isNumber) })
            else { continue }
            found = (found ?? []) + [try? Token(candidate.prefix(kind.length))].compactMap { $0 }
        }
        return found
    }
}
