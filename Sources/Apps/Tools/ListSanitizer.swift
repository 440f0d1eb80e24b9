import Model

/// Repairs the entries of an app's list, and keeps each name once.
///
/// Some clients reject a whole list for one invalid entry, because the SDKs validate every entry. The models' APIs
/// reject requests with duplicate tool names. Entries that match MCP's schema are changed only where a model's API refuses
/// them, and never in their meaning.
struct ListSanitizer {
    /// The member that names an entry, by list method.
    private static let keys = [
        "tools/list": "name", "prompts/list": "name", "resources/list": "uri",
        "resources/templates/list": "uriTemplate",
    ]

    private let method: String
    private var names: Set<[UInt8]> = []
    /// Indicates whether an entry was damaged: part of it was changed or removed, or its name was missing.
    private(set) var hasRepaired = false

    /// - Parameter method: The method of the list, such as `tools/list`.
    init(_ method: String) { self.method = method }

    /// Sanitizes the entries of a whole list.
    static func sanitize(_ entries: [JSON], of method: String) -> [JSON] {
        var sanitizer = ListSanitizer(method)
        return entries.compactMap { sanitizer.sanitize($0) }
    }

    /// Sanitizes one entry: repairs damaged members, removes optional ones of a wrong type, and adds missing ones.
    ///
    /// - Returns: Nil for an entry without a name, with a duplicate name, or of another type.
    mutating func sanitize(_ entry: JSON) -> JSON? {
        guard let original = entry.object, let repaired = repaired(original),
            // Compared as bytes: a set of Swift strings treats é as equal to e with a combining accent.
            names.insert(repaired.name).inserted
        else {
            hasRepaired = true
            return nil
        }
        // A missing member that clients require is added, which is no repair.
        if original["name"] == nil || !entry.isKept(in: .object(repaired.entry)) { hasRepaired = true }
        return .object(repaired.entry)
    }

    private func repaired(_ original: JSONObject) -> (entry: JSONObject, name: [UInt8])? {
        var entry = original
        guard let key = Self.keys[method], var name = entry[key]?.string, !name.isEmpty else { return nil }
        if entry["name"]?.string == nil { entry["name"] = .string(name) }
        switch method {
        case "tools/list":
            let listed = ToolNamespace.safeName(of: name)
            if listed != name {
                entry["_meta"] = .object(
                    (entry["_meta"]?.object ?? [:]).with(ToolNamespace.originalNameKey, .string(name))
                )
                entry["name"] = .string(listed)
                name = listed
            } else if let claimed = entry["_meta"]?[ToolNamespace.originalNameKey],
                claimed == .string(name) || claimed.string.map(ToolNamespace.safeName) != name
            {
                // A sanitized list has the name that leads to this one. An app may claim another.
                entry["_meta"] = entry["_meta"]?.object.map { .object($0.with(ToolNamespace.originalNameKey, nil)) }
            }
            entry["inputSchema"] = JSONSchemaSanitizer.inputSchema(entry["inputSchema"])
            if let output = entry["outputSchema"] { entry["outputSchema"] = JSONSchemaSanitizer.outputSchema(output) }
        case "prompts/list":
            if let arguments = entry["arguments"] {
                entry["arguments"] = arguments.array.map { .array($0.compactMap(Self.promptArgument)) }
            }
        default: break
        }
        entry.removeMembers(unless: Self.isValid)
        for member in ["annotations", "icons"] { entry[member] = entry[member].map(Self.withValidParts) }
        return (entry, Array(name.utf8))
    }

    private static func promptArgument(_ json: JSON) -> JSON? {
        guard var argument = json.object, argument["name"]?.string != nil else { return nil }
        argument.removeMembers { $0 == "required" ? $1.bool != nil : isValid($0, $1) }
        return .object(argument)
    }

    /// Removes the invalid hints of annotations, and invalid icons.
    private static func withValidParts(_ json: JSON) -> JSON {
        guard var annotations = json.object else {
            let icons = json.array?.filter { icon in
                icon["src"]?.string != nil && icon.object?.members.allSatisfy { isValid($0.name, $0.value) } == true
            }
            return .array(icons ?? [])
        }
        annotations.removeMembers(unless: isValid)
        return .object(annotations)
    }

    /// Returns whether an optional member has the type that MCP 2025-11-25 gives it. Members of other names are not checked.
    private static func isValid(_ name: String, _ value: JSON) -> Bool {
        switch name {
        case "title", "description", "mimeType", "lastModified": value.string != nil
        case "annotations", "_meta": value.object != nil
        case "execution":
            value.object.map { [nil, "required", "optional", "forbidden"].contains($0["taskSupport"]) } ?? false
        case "icons": value.array != nil
        case "sizes": value.array?.allSatisfy { $0.string != nil } ?? false
        case "size": value.number != nil
        case "readOnlyHint", "destructiveHint", "idempotentHint", "openWorldHint": value.bool != nil
        case "audience": value.array?.allSatisfy { $0 == "user" || $0 == "assistant" } ?? false
        case "priority": value.number?.double.map { (0...1).contains($0) } ?? false
        default: true
        }
    }
}

extension JSONObject {
    /// Returns a copy with this member, or without it for nil.
    func with(_ name: String, _ value: JSON?) -> JSONObject {
        var object = self
        object[name] = value
        return object
    }

    fileprivate mutating func removeMembers(unless isValid: (String, JSON) -> Bool) {
        for member in members where !isValid(member.name, member.value) { self[member.name] = nil }
    }
}
