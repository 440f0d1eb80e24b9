import AccessControl
import Glibc
import JSON

/// Takes an app's own token out of what the app says, so that no agent sees it.
///
/// It finds the token where it stands whole in one text. It does not find a token that is encoded or spread over several texts.
struct TokenRedactor: Sendable {
    static let mark = "[token removed]"
    /// A shorter token may stand in any text by chance, and is left.
    static let shortest = 8

    private let tokens: [[UInt8]]

    init(_ passages: [AuthorizedRoute]) {
        var tokens: [[UInt8]] = []
        for secret in passages.compactMap({ $0.secret ?? $0.withheld }) {
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

    /// Nil where nothing has to be replaced, so that what is large is not copied.
    private func redacted(_ json: JSON) -> JSON? {
        switch json {
        case .null, .bool, .number: return nil
        case .string(let text): return redacted(text).map(JSON.string)
        case .array(let elements):
            var changed: [JSON]?
            for (place, element) in elements.enumerated() {
                guard let clean = redacted(element) else { continue }
                if changed == nil { changed = elements }
                changed?[place] = clean
            }
            return changed.map(JSON.array)
        case .object(let object):
            var changed: [JSONObject.Member]?
            for (place, member) in object.members.enumerated() {
                let (name, value) = (redacted(member.name), redacted(member.value))
                guard name != nil || value != nil else { continue }
                if changed == nil { changed = object.members }
                changed?[place] = JSONObject.Member(name: name ?? member.name, value: value ?? member.value)
            }
            return changed.map { .object(JSONObject($0)) }
        }
    }

    private func redacted(_ text: String) -> String? {
        var changed: String?
        for token in tokens { if let clean = Self.remove(token, from: changed ?? text) { changed = clean } }
        return changed
    }

    /// In bytes: to Swift a letter with an accent behind it is another letter.
    private static func remove(_ token: [UInt8], from text: String) -> String? {
        var text = text
        return text.withUTF8 { bytes in
            guard var place = find(token, in: bytes, from: 0) else { return nil }
            var (clean, rest) = ([UInt8](), 0)
            while true {
                clean += bytes[rest..<place]
                clean += mark.utf8
                rest = place + token.count
                guard let next = find(token, in: bytes, from: rest) else { break }
                place = next
            }
            return String(decoding: clean + bytes[rest...], as: UTF8.self)
        }
    }

    private static func find(_ token: [UInt8], in bytes: UnsafeBufferPointer<UInt8>, from start: Int) -> Int? {
        guard let base = bytes.baseAddress, let first = token.first else { return nil }
        // Places from which on there is room for it.
        let end = bytes.count - token.count + 1
        var place = start
        while place < end, let found = memchr(base + place, CInt(first), end - place) {
            place = UnsafeRawPointer(found) - UnsafeRawPointer(base)
            if memcmp(base + place, token, token.count) == 0 { return place }
            place += 1
        }
        return nil
    }
}
