import AccessControl
import Glibc
import Model

/// Removes an app's session token from the app's messages, so that agents never see it.
///
/// Finds a token that is completely contained in one string. Does not find a token that is encoded or split over
/// several strings.
struct TokenRedactor: Sendable {
    static let mark = "[token removed]"
    /// The minimum length of a token to remove. A shorter one may occur in any text by chance.
    static let shortest = 8

    private let tokens: [[UInt8]]

    init(_ routes: [AuthorizedRoute]) {
        var tokens: [[UInt8]] = []
        for secret in routes.compactMap({ $0.secret ?? $0.withheld }) {
            let token = Array(secret.reveal().utf8)
            if token.count >= Self.shortest, !tokens.contains(token) { tokens.append(token) }
        }
        self.tokens = tokens
    }

    func redact(_ json: JSON) -> JSON {
        if tokens.isEmpty { return json }
        return redacted(json) ?? json
    }

    func redact(_ text: String) -> String { redacted(text) ?? text }

    /// Returns nil if nothing has to be replaced, to avoid a copy of large values.
    private func redacted(_ json: JSON) -> JSON? {
        switch json {
        case .null, .bool: return nil
        case .number(let number):
            return number.text.utf8.count < Self.shortest ? nil : redacted(number.text).map(JSON.string)
        case .string(let text): return redacted(text).map(JSON.string)
        case .array(let elements):
            var changed: [JSON]?
            for (position, element) in elements.enumerated() {
                guard let clean = redacted(element) else { continue }
                if changed == nil { changed = elements }
                changed?[position] = clean
            }
            return changed.map(JSON.array)
        case .object(let object):
            var changed: [JSONObject.Member]?
            for (position, member) in object.members.enumerated() {
                let (name, value) = (redacted(member.name), redacted(member.value))
                guard name != nil || value != nil else { continue }
                if changed == nil { changed = object.members }
                changed?[position] = JSONObject.Member(name: name ?? member.name, value: value ?? member.value)
            }
            return changed.map { .object(JSONObject($0)) }
        }
    }

    private func redacted(_ text: String) -> String? {
        var changed: String?
        for token in tokens { if let clean = Self.remove(token, from: changed ?? text) { changed = clean } }
        return changed
    }

    /// Compares bytes, because Swift treats a letter followed by a combining accent as another letter.
    private static func remove(_ token: [UInt8], from text: String) -> String? {
        var text = text
        return text.withUTF8 { bytes in
            guard var position = SecretScanner.find(token, in: bytes, from: 0) else { return nil }
            var (clean, rest) = ([UInt8](), 0)
            while true {
                clean += bytes[rest..<position]
                clean += mark.utf8
                rest = position + token.count
                guard let next = SecretScanner.find(token, in: bytes, from: rest) else { break }
                position = next
            }
            return String(decoding: clean + bytes[rest...], as: UTF8.self)
        }
    }
}
