/// Bounds arguments and results for the activity, and removes secrets from them.
package struct SecretRedactor: Sendable {
    package static let mark = "[removed]"
    /// The maximum size of the arguments, and of the text of a result, in bytes.
    package static let limit = 2_048
    /// The maximum size of one text in arguments.
    private static let textLimit = 1_024
    /// The maximum size of a secret in bytes. A text is cut this far behind its limit before secrets are searched in it, so
    /// that no secret is cut.
    private static let secretLimit = 4_096
    private static let depthLimit = 8
    private static let nameLimit = 128
    private static let more = "…"

    /// The secrets of endpoints.
    private let known: [[UInt8]]

    package init(known: [[UInt8]]) { self.known = known }

    /// Returns a text without secrets, cut at a limit in bytes.
    package func text(_ text: String, limit: Int = SecretRedactor.limit) -> String {
        var text = text
        let (bytes, isCut) = text.withUTF8 { utf8 -> ([UInt8], Bool) in
            let isLong = utf8.count > limit + Self.secretLimit
            let part = UnsafeBufferPointer(rebasing: utf8[..<(isLong ? limit + Self.secretLimit : utf8.count)])
            let ranges = SecretScanner.ranges(in: part, known: known)
            guard !ranges.isEmpty || isLong || part.count > limit else { return ([], false) }
            var kept: [UInt8] = []
            kept.reserveCapacity(min(part.count, limit + 64))
            var start = 0
            for range in ranges where range.lowerBound < limit {
                kept += part[start..<range.lowerBound]
                kept += Self.mark.utf8
                start = range.upperBound
            }
            if start < limit { kept += part[start..<min(limit, part.count)] }
            return (kept, part.count > limit)
        }
        guard !bytes.isEmpty else { return text }
        return isCut ? Self.decoded(bytes[...]) + Self.more : String(decoding: bytes, as: UTF8.self)
    }

    /// Returns the part of a text that `text(_:limit:)` reads.
    package static func excerpt(of text: String, limit: Int = limit) -> String {
        let read = limit + secretLimit
        return text.utf8.count <= read ? text : String(decoding: text.utf8.prefix(read), as: UTF8.self)
    }

    /// Decodes bytes that may end in the middle of a character.
    private static func decoded(_ bytes: ArraySlice<UInt8>) -> String {
        var bytes = bytes
        let tail = bytes.suffix(4)
        if let lead = tail.lastIndex(where: { $0 & 0xC0 != 0x80 }), bytes[lead] >= 0xC0 {
            let width = bytes[lead] >= 0xF0 ? 4 : bytes[lead] >= 0xE0 ? 3 : 2
            if bytes.endIndex - lead < width { bytes = bytes[..<lead] }
        }
        return String(decoding: bytes, as: UTF8.self)
    }

    /// Returns whether arguments take so little memory that they can wait for `arguments(_:)`.
    package static func isSmall(_ arguments: JSONObject) -> Bool {
        var budget = 2 * limit
        return isSmall(.object(arguments), &budget)
    }

    private static func isSmall(_ json: JSON, _ budget: inout Int) -> Bool {
        // A value and the head of its text.
        budget -= 64
        switch json {
        case .null, .bool: break
        case .number(let number): budget -= number.text.utf8.count
        case .string(let text): budget -= text.utf8.count
        case .array(let elements):
            for element in elements { guard isSmall(element, &budget) else { return false } }
        case .object(let object):
            for member in object.members {
                budget -= member.name.utf8.count
                guard isSmall(member.value, &budget) else { return false }
            }
        }
        return budget > 0
    }

    /// Returns arguments without secrets, at most about `limit` bytes long.
    package func arguments(_ arguments: JSONObject) -> JSONObject {
        var budget = Self.limit
        return members(arguments, depth: 0, &budget)
    }

    private func members(_ object: JSONObject, depth: Int, _ budget: inout Int) -> JSONObject {
        // `{"key": "authToken", "value": …}` names its secret in another member.
        let namesSecret = object.members.contains { member in
            Self.naming.contains(member.name.lowercased())
                && member.value.string.map(SecretScanner.isNameOfSecret) == true
        }
        var kept: [JSONObject.Member] = []
        for member in object.members {
            guard budget > 0 else {
                kept.append(.init(name: Self.more, value: .string(Self.more)))
                break
            }
            let name = text(member.name, limit: Self.nameLimit)
            budget -= name.utf8.count + 4
            let isSecret =
                SecretScanner.isNameOfSecret(member.name)
                || namesSecret && Self.valued.contains(member.name.lowercased())
            kept.append(.init(name: name, value: value(member.value, isSecret: isSecret, depth: depth, &budget)))
        }
        return JSONObject(kept)
    }

    private static let naming: Set = ["key", "name", "header", "field", "id", "identifier", "element_id"]
    private static let valued: Set = ["value", "text", "data", "content"]

    private func value(_ json: JSON, isSecret: Bool, depth: Int, _ budget: inout Int) -> JSON {
        switch json {
        case .null, .bool:
            budget -= 5
            return json
        case _ where isSecret:
            budget -= Self.mark.utf8.count
            return .string(Self.mark)
        case .number(let number):
            // A number may have any number of digits.
            let kept = text(number.text, limit: Self.nameLimit)
            budget -= kept.utf8.count
            return kept == number.text ? json : .string(kept)
        case .string(let string):
            let kept = text(string, limit: min(Self.textLimit, max(budget, 0)))
            budget -= kept.utf8.count + 2
            return .string(kept)
        case .array, .object:
            guard depth < Self.depthLimit, budget > 0 else { return .string(Self.more) }
            budget -= 2
            if let object = json.object { return .object(members(object, depth: depth + 1, &budget)) }
            var kept: [JSON] = []
            // `["--password", "hunter2"]` names its secret in the element before.
            var follows = false
            for element in json.array ?? [] {
                guard budget > 0 else {
                    kept.append(.string(Self.more))
                    break
                }
                kept.append(value(element, isSecret: follows, depth: depth + 1, &budget))
                follows = element.string.map { $0.utf8.first == 0x2D && SecretScanner.isNameOfSecret($0) } ?? false
            }
            return .array(kept)
        }
    }
}
