import Glibc
import Model

/// Replaces copies of an image's Base64 by the URI of its artifact, in structured content and in text.
struct Base64Replacer: Sendable {
    let text: String
    let uri: String

    /// Replaces the copies in every string of a JSON value.
    func applied(to json: JSON) -> JSON {
        switch json {
        case .string(let string): .string(applied(toString: string) ?? string)
        case .array(let elements): .array(elements.map { applied(to: $0) })
        case .object(let object):
            .object(object.compactMapValues { applied(to: $0) })
        case .null, .bool, .number: json
        }
    }

    /// Replaces the copies in a text. Text that is JSON is parsed first, because `/` may be escaped in the Base64.
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

    /// Returns nil if the text has no copy.
    private func applied(toString string: String) -> String? {
        if string == text { return uri }
        guard string.utf8.count > text.utf8.count, let start = offset(in: string) else { return nil }
        let utf8 = string.utf8
        var head = String(decoding: utf8.prefix(start), as: UTF8.self)
        if head.hasSuffix(";base64,"), let data = head.firstRange(of: "data:", endingAtMost: 64) {
            head.removeSubrange(data...)
        }
        let tail = String(decoding: utf8.dropFirst(start + text.utf8.count), as: UTF8.self)
        return head + uri + (applied(toString: tail) ?? tail)
    }

    private func offset(in string: String) -> Int? {
        var (string, text) = (string, text)
        return string.withUTF8 { string in
            text.withUTF8 { text in
                guard let haystack = string.baseAddress, let needle = text.baseAddress, text.count > 0 else {
                    return nil
                }
                var start = 0
                while start + text.count <= string.count {
                    let rest = string.count - text.count - start + 1
                    guard let found = memchr(haystack + start, CInt(needle[0]), rest) else { return nil }
                    start = UnsafeRawPointer(found) - UnsafeRawPointer(haystack)
                    if memcmp(haystack + start, needle, text.count) == 0 { return start }
                    start += 1
                }
                return nil
            }
        }
    }
}

extension String {
    /// Returns the start of the last occurrence of a word within this number of bytes before the end.
    fileprivate func firstRange(of word: String, endingAtMost bytes: Int) -> String.Index? {
        let tail = utf8.suffix(bytes)
        var index = tail.endIndex
        while index > tail.startIndex {
            index = tail.index(before: index)
            if self[index...].hasPrefix(word) { return index }
        }
        return nil
    }
}
