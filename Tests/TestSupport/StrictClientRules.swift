package import Model

/// What the strictest known clients demand of a list. An entry that breaks a rule costs the whole list, or every request.
///
/// The sources are the schemas of the TypeScript SDK (`types.ts`, 1.12 to 1.24) and the errors of the models' APIs that
/// people reported: gemini-cli#4400, sbroenne/mcp-server-excel#607, anomalyco/opencode#11889, openai-agents-python#449,
/// mark3labs/mcphost#35.
package enum StrictClientRules {
    /// Returns the broken rules of the entries of a list.
    package static func problems(in entries: [JSON], of method: String) -> [String] {
        entries.flatMap { entry -> [String] in
            let name = entry["name"]?.string ?? entry.text
            var problems = entryProblems(entry)
            switch method {
            case "tools/list": problems += toolProblems(entry)
            case "prompts/list": problems += promptProblems(entry)
            case "resources/list": problems += resourceProblems(entry, "uri")
            default: problems += resourceProblems(entry, "uriTemplate")
            }
            return problems.map { "\(name): \($0)" }
        } + duplicates(entries.compactMap { $0["name"]?.string }, method)
    }

    /// Two functions of one name make every model's API refuse the request.
    private static func duplicates(_ names: [String], _ method: String) -> [String] {
        method == "tools/list" && Set(names).count < names.count ? ["a name is listed twice"] : []
    }

    /// `BaseMetadataSchema` and `IconSchema` of the TypeScript SDK.
    private static func entryProblems(_ entry: JSON) -> [String] {
        var problems: [String] = []
        if entry["name"]?.string == nil { problems.append("name is no text") }
        for member in ["title", "description", "mimeType"] where entry[member].map({ $0.string == nil }) == true {
            problems.append("\(member) is no text")
        }
        if let meta = entry["_meta"], meta.object == nil { problems.append("_meta is no object") }
        for icon in entry["icons"]?.array ?? [] {
            let hasSizes = icon["sizes"].map { $0.array?.allSatisfy { $0.string != nil } == true } ?? true
            if icon["src"]?.string == nil || !hasSizes { problems.append("an icon is invalid") }
        }
        if let icons = entry["icons"], icons.array == nil { problems.append("icons are no list") }
        return problems
    }

    private static func resourceProblems(_ entry: JSON, _ key: String) -> [String] {
        var problems = entry[key]?.string == nil ? ["\(key) is no text"] : []
        if let size = entry["size"], size.number == nil { problems.append("size is no number") }
        if let audience = entry["annotations"]?["audience"],
            audience.array?.allSatisfy({ $0 == "user" || $0 == "assistant" }) != true
        {
            problems.append("audience is invalid")
        }
        return problems
    }

    private static func promptProblems(_ entry: JSON) -> [String] {
        guard let arguments = entry["arguments"] else { return [] }
        guard let arguments = arguments.array else { return ["arguments are no list"] }
        return arguments.flatMap { argument in
            (argument["name"]?.string == nil ? ["an argument has no name"] : [])
                + (argument["required"].map { $0.bool == nil } == true ? ["required is no boolean"] : [])
                + (argument["description"].map { $0.string == nil } == true ? ["a description is no text"] : [])
        }
    }

    private static func toolProblems(_ tool: JSON) -> [String] {
        var problems: [String] = []
        let name = tool["name"]?.string ?? ""
        // MCP 2025-11-25, tools: at most 128 characters.
        if !(1...128).contains(name.utf8.count) { problems.append("the name has \(name.utf8.count) bytes") }
        if name.unicodeScalars.contains(where: { $0.properties.generalCategory == .control }) {
            problems.append("the name has control characters")
        }
        for member in ["annotations", "execution"] where tool[member].map({ $0.object == nil }) == true {
            problems.append("\(member) is no object")
        }
        if let support = tool["execution"]?["taskSupport"],
            !["required", "optional", "forbidden"].contains(support)
        {
            problems.append("taskSupport is unknown")
        }
        for hint in tool["annotations"]?.object?.members ?? [] {
            let isValid =
                hint.name == "title" ? hint.value.string != nil : !hint.name.hasSuffix("Hint") || hint.value.bool != nil
            if !isValid { problems.append("annotations.\(hint.name) is invalid") }
        }
        problems += objectSchemaProblems(tool["inputSchema"]).map { "inputSchema: \($0)" }
        if let output = tool["outputSchema"] {
            problems += objectSchemaProblems(output).map { "outputSchema: \($0)" }
        }
        // OpenAI: "object schema missing properties".
        if tool["inputSchema"]?["properties"] == nil { problems.append("inputSchema: has no properties") }
        return problems + modelProblems(tool["inputSchema"] ?? .null, at: "inputSchema")
    }

    /// `inputSchema` and `outputSchema` of `ToolSchema` in the TypeScript SDK. `AssertObjectSchema` refuses a boolean.
    private static func objectSchemaProblems(_ schema: JSON?) -> [String] {
        var problems: [String] = []
        if schema?["type"] != "object" { problems.append("type is not object") }
        if let properties = schema?["properties"] {
            if properties.object?.members.allSatisfy({ $0.value.object != nil }) != true {
                problems.append("properties are not objects by name")
            }
        }
        if let required = schema?["required"], required.array?.allSatisfy({ $0.string != nil }) != true {
            problems.append("required is no list of texts")
        }
        return problems
    }

    /// The rules of the models' APIs, at every depth.
    private static func modelProblems(_ schema: JSON, at path: String) -> [String] {
        var problems: [String] = []
        if let values = schema["enum"] {
            // Gemini: "didn't specify the schema type field"; "only allowed for STRING type"; "cannot be empty".
            if values.array?.isEmpty != false { problems.append("\(path).enum is empty") }
            let hasTexts = values.array?.allSatisfy { $0.string != nil } == true
            if hasTexts, schema["type"] == nil { problems.append("\(path).enum has no type") }
        }
        // OpenAI: "array schema missing items".
        if schema["type"] == "array", schema["items"] == nil, schema["prefixItems"] == nil {
            problems.append("\(path) has no items")
        }
        for keyword in ["anyOf", "oneOf", "allOf"] where schema[keyword] != nil {
            guard let schemas = schema[keyword]?.array, !schemas.isEmpty else {
                problems.append("\(path).\(keyword) is no list")
                continue
            }
            problems += schemas.flatMap { modelProblems($0, at: "\(path).\(keyword)") }
        }
        for keyword in ["properties", "$defs"] {
            for member in schema[keyword]?.object?.members ?? [] {
                if member.value.object == nil { problems.append("\(path).\(member.name) is no object") }
                problems += modelProblems(member.value, at: "\(path).\(member.name)")
            }
        }
        if let items = schema["items"], items.array == nil { problems += modelProblems(items, at: "\(path).items") }
        return problems
    }

    /// The rules for the broker's own tools, which are written for every model: each schema has a type that is one word
    /// (Gemini's OpenAPI subset), `enum` has texts only, and names have the letters that every API allows. OpenAI's strict
    /// mode needs types too, and its clients add `additionalProperties` and `required` themselves.
    package static func portabilityProblems(of tool: JSON) -> [String] {
        let name = tool["name"]?.string ?? ""
        let letters = name.unicodeScalars.allSatisfy {
            $0.isASCII && ($0.properties.isAlphabetic || $0 == "_" || $0 == "-")
        }
        return (letters && name.utf8.count <= 64 ? [] : ["\(name) is no name of a function"])
            + typeProblems(tool["inputSchema"] ?? .null, at: name)
    }

    private static func typeProblems(_ schema: JSON, at path: String) -> [String] {
        let keywords: Set = ["type", "description", "enum", "properties", "required", "items", "maximum", "minimum"]
        var problems = (schema.object?.members ?? []).filter { !keywords.contains($0.name) }.map {
            "\(path).\($0.name)"
        }
        if schema["type"]?.string == nil { problems.append("\(path) has no type") }
        if schema["enum"]?.array?.allSatisfy({ $0.string?.isEmpty == false }) == false {
            problems.append("\(path).enum has other values than texts")
        }
        for member in schema["properties"]?.object?.members ?? [] {
            problems += typeProblems(member.value, at: "\(path).\(member.name)")
        }
        return problems + (schema["items"].map { typeProblems($0, at: "\(path).items") } ?? [])
    }
}
