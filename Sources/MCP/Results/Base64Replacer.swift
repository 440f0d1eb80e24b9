import Glibc
import JSON

/// Puts the address of an image where its base64 was said a second time: in structured content, or in a text beside it.
struct Base64Replacer: Sendable {
    let text: String
    let uri: String

    func applied(to json: JSON) -> JSON {
        switch json {
        case .string(let string): .string(applied(toString: string) ?? string)
        case .array(let elements): .array(elements.map { applied(to: $0) })
        case .object(let object):
            .object(JSONObject(object.members.map { .init(name: $0.name, value: applied(to: $0.value)) }))
        case .null, .bool, .number: json
        }
    }

    /// A text that is JSON is read as such: writers may escape the slashes of base64.
    func applied(toText string: String) -> String {
        guard string.utf8.count >= text.utf8.count else { return string }
        if let first = string.first(where: { !$0.isWhitespace }), first == "{" || first == "[",
            let json = try? JSON(parsing: string)
        {
            let applied = applied(to: json)
            return applied == json ? string : applied.text
        }
        return applied(toString: string) ?? string
    }

    /// Nil where it is not in there.
    private func applied(toString string: String) -> String? {
        if string == text { return uri }
        guard string.utf8.count > text.utf8.count, let start = place(in: string) else { return nil }
        let utf8 = string.utf8
        var head = String(decoding: utf8.prefix(start), as: UTF8.self)
        if head.hasSuffix(";base64,"), let data = head.firstRange(of: "data:", endingAtMost: 64) {
            head.removeSubrange(data...)
        }
        let tail = String(decoding: utf8.dropFirst(start + text.utf8.count), as: UTF8.self)
        return head + uri + (applied(toString: tail) ?? tail)
    }

    private func place(in string: String) -> Int? {
        var (string, text) = (string, text)
        return string.withUTF8 { string in
            text.withUTF8 { text in
                guard let all = string.baseAddress, let wanted = text.baseAddress, text.count > 0 else { return nil }
                var start = 0
                while start + text.count <= string.count {
                    let rest = string.count - text.count - start + 1
                    guard let found = memchr(all + start, CInt(wanted[0]), rest) else { return nil }
                    start = UnsafeRawPointer(found) - UnsafeRawPointer(all)
                    if memcmp(all + start, wanted, text.count) == 0 { return start }
                    start += 1
                }
                return nil
            }
        }
    }
}

extension String {
    /// Where the last such word begins that is at most so many bytes before the end.
    fileprivate func firstRange(of word: String, endingAtMost bytes: Int) -> String.Index? {
        let tail = utf8.suffix(bytes)
        var place = tail.endIndex
        while place > tail.startIndex {
            place = tail.index(before: place)
            if self[place...].hasPrefix(word) { return place }
        }
        return nil
    }
}
