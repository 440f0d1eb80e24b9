import Model

/// Repairs the results of tools that deviate from MCP's schema.
///
/// The SDKs validate a result as a whole, so a client drops all content for one invalid member. A valid result is not
/// changed. Content that cannot be repaired is passed on as text.
enum ToolResultSanitizer {
    /// The members of a content block that clients require, by type.
    private static let required: [String: [String]] = [
        "text": ["text"], "image": ["data"], "audio": ["data", "mimeType"], "resource": [],
        "resource_link": ["uri", "name"],
    ]
    private static let optionalTexts = ["title", "description", "mimeType"]

    /// Returns the repaired result; nil if it is valid.
    static func repaired(_ result: JSONObject) -> JSONObject? {
        // Other results request input, and have no content.
        guard result["resultType"].map({ $0 == "complete" }) ?? true else { return nil }
        var changed = result
        switch result["content"] {
        case .array(let blocks)?:
            if !blocks.allSatisfy(isValid) { changed["content"] = .array(blocks.compactMap(block)) }
        case .null?, nil:
            changed["content"] = .array(contentOfOthers(in: result).map { [text($0)] } ?? [])
        case let value?:
            changed["content"] = .array([value].compactMap(block))
        }
        if result["structuredContent"] == .null { changed["structuredContent"] = nil }
        if let meta = result["_meta"], meta.object == nil { changed["_meta"] = nil }
        if let isError = result["isError"], isError.bool == nil { changed["isError"] = isError == "true" ? true : nil }
        return changed == result ? nil : changed
    }

    /// Returns what a result without content consists of: its structured content, or the members that MCP does not know.
    private static func contentOfOthers(in result: JSONObject) -> JSON? {
        if let structured = result["structuredContent"], !structured.isNull { return structured }
        let known: Set = ["content", "structuredContent", "isError", "_meta", "resultType", "ttlMs", "cacheScope"]
        let others = result.members.filter { !known.contains($0.name) }
        return others.isEmpty ? nil : .object(JSONObject(others))
    }

    private static func text(_ json: JSON) -> JSON { ["type": "text", "text": .string(json.string ?? json.text)] }

    private static func isValid(_ block: JSON) -> Bool {
        guard let object = block.object, let type = object["type"]?.string, let names = required[type] else {
            return false
        }
        return names.allSatisfy { object[$0]?.string != nil }
            && (type != "resource" || isContents(object["resource"]))
            && optionalTexts.allSatisfy { object[$0].map { $0.string != nil } ?? true }
            && ["annotations", "_meta"].allSatisfy { object[$0].map { $0.object != nil } ?? true }
    }

    private static func isContents(_ resource: JSON?) -> Bool {
        resource?["uri"]?.string != nil && (resource?["text"]?.string ?? resource?["blob"]?.string) != nil
    }

    /// Returns a block without invalid optional members, or as text if a required member is invalid.
    ///
    /// - Returns: Nil for a block without content.
    private static func block(_ block: JSON) -> JSON? {
        guard var object = block.object else { return block.isNull ? nil : text(block) }
        guard !isValid(block) else { return block }
        for name in optionalTexts where object[name]?.string == nil { object[name] = nil }
        for name in ["annotations", "_meta"] where object[name]?.object == nil { object[name] = nil }
        switch object["type"]?.string {
        case "text"?:
            guard let value = object["text"], !value.isNull else { return nil }
            object["text"] = .string(value.string ?? value.text)
        case "resource_link"? where object["name"]?.string == nil:
            object["name"] = object["uri"]
        case "audio"? where object["mimeType"] == nil:
            object["mimeType"] = "application/octet-stream"
        default: break
        }
        return isValid(.object(object)) ? .object(object) : text(block)
    }
}
