import Model

/// The arguments of a tool call, checked against the tool's schema before the call.
struct ToolArguments {
    private let tool: String
    private let id: EndpointID
    private let schema: JSON?

    /// - Parameters:
    ///   - tool: The tool's name.
    ///   - id: The endpoint, for hints.
    ///   - schema: The tool's `inputSchema`; nil if it is unknown, and then every name is accepted.
    init(of tool: String, at id: EndpointID, schema: JSON?) {
        (self.tool, self.id, self.schema) = (tool, id, schema)
    }

    private var names: [String] { schema?["properties"]?.object?.members.map(\.name) ?? [] }
    private var required: [String] { schema?["required"]?.array?.compactMap(\.string) ?? [] }
    /// True if the schema allows no other names.
    private var isClosed: Bool { schema?["additionalProperties"] == false && schema?["patternProperties"] == nil }
    /// True if the schema names its arguments and says nothing about others. JSON Schema then allows others (2020-12,
    /// core, section 10.3.2.3), but apps ignore them: a typing error would go unnoticed.
    private var isSilent: Bool {
        schema?["additionalProperties"] == nil && schema?["patternProperties"] == nil
            && schema?["properties"]?.object != nil
    }

    /// The argument that a word without a name may be: the only one that the tool requires or has.
    private func example(for word: String) -> String {
        let name = [required, names].first { $0.count == 1 }?.first
        return name.map { SanitizedText("\($0)=\(word)").text.shellQuoted } ?? "KEY=VALUE"
    }

    private var hint: String { "patchbay tools \(id) \(SanitizedText(tool))" }

    /// Parses the JSON object of `--json-args`.
    ///
    /// - Throws: `CLIError` for invalid JSON or another JSON value.
    static func object(in bytes: [UInt8]) throws(CLIError) -> JSONObject {
        let example = #"--json-args '{"key": "value"}'"#
        let json: JSON
        do throws(JSONError) {
            json = try JSON(parsing: bytes)
        } catch {
            throw .usage("the arguments are not valid JSON: \(error)", try: example)
        }
        guard let object = json.object else {
            throw .usage("the arguments must be a JSON object, not \(json.typeDescription)", try: example)
        }
        return object
    }

    /// Merges `key=value` arguments into the JSON object of `--json-args`.
    ///
    /// The object may have names that the schema does not mention, unless the schema refuses them.
    /// - Throws: `CLIError` for an invalid, unknown or repeated argument, and if a required argument is missing.
    func merged(_ words: [String], into object: JSONObject) throws(CLIError) -> JSONObject {
        let node = schema.map { JSONSchemaNode($0) }
        var arguments = object
        for word in words {
            let command = "patchbay call \(id) \(SanitizedText(tool).text.shellQuoted)"
            let argument = try ToolArgument(word, try: "\(command) \(example(for: word))")
            if isClosed || isSilent { try check(argument.name) }
            guard arguments[argument.name] == nil else {
                throw .usage(
                    "the argument \(SanitizedText(argument.name)) is given twice; \(SanitizedText(tool)) was not called",
                    try: hint
                )
            }
            arguments[argument.name] = try argument.value(by: node?.member(argument.name), try: hint)
        }
        if isClosed { for member in object.members { try check(member.name) } }
        if let missing = required.first(where: { arguments[$0] == nil }) {
            throw .usage(
                "\(SanitizedText(tool)) needs the argument \(SanitizedText(missing)); it was not called",
                try: "patchbay call \(id) \(SanitizedText(tool)) \(SanitizedText(missing))=…"
            )
        }
        // The broker converts the members of the JSON object.
        if let node, let problem = JSONSchemaValidator(node).problem(with: node.converted(.object(arguments)).value) {
            throw .usage("\(SanitizedText(tool)) was not called: \(SanitizedText(problem, limit: 500))", try: hint)
        }
        return arguments
    }

    /// Refuses a name that the schema does not have.
    private func check(_ name: String) throws(CLIError) {
        guard !names.contains(name) else { return }
        let suggestion = SimilarNameFinder.suggestion(
            for: name,
            among: names.map { SanitizedText($0).text },
            listedAs: "arguments"
        )
        throw .usage(
            "\(SanitizedText(tool)) has no argument \"\(SanitizedText(name))\"\(suggestion)",
            try: hint
        )
    }
}

/// A `key=value` argument of a tool call.
struct ToolArgument: Equatable {
    let name: String
    let text: String

    /// - Throws: `CLIError` if the text is not `key=value`; `hint` is the next step.
    init(_ word: String, try hint: String) throws(CLIError) {
        guard let sign = word.firstIndex(of: "="), sign != word.startIndex else {
            throw .usage("\"\(SanitizedText(word))\" is not KEY=VALUE", try: hint)
        }
        name = String(word[..<sign])
        text = String(word[word.index(after: sign)...])
    }

    /// Converts the text to the type in the property's schema. A text stays a text if the schema allows that. Without a
    /// type, valid JSON except strings stays JSON.
    ///
    /// - Parameters:
    ///   - schema: The property's schema; nil if the tool has none.
    ///   - hint: The command that shows the tool.
    /// - Returns: The value.
    /// - Throws: `CLIError` if the text does not match the schema.
    func value(by schema: JSONSchemaNode?, try hint: String) throws(CLIError) -> JSON {
        let json = try? JSON(parsing: text)
        guard let schema, let types = schema.types else {
            return json.flatMap { $0.string == nil ? $0 : nil } ?? .string(text)
        }
        let validator = JSONSchemaValidator(schema)
        if types.contains(.string) {
            if json?.isNull == true, types.contains(.null) { return .null }
            // The text may be a number among the values of `enum`.
            guard let json, validator.problem(with: .string(text)) != nil, validator.problem(with: json) == nil else {
                return .string(text)
            }
            return json
        }
        guard let json, types.isSuperset(of: JSONTypes(of: json)) else {
            throw .usage(
                "\(SanitizedText(name)) must be \(types.names.joined(separator: " or ")), and "
                    + "\"\(SanitizedText(text))\" is not",
                try: hint
            )
        }
        return json
    }
}
