import Model
package import TOML

extension Profile {
    /// The maximum number of ports. Every port of every phone is tried once a second.
    private static let portLimit = 8

    /// Parses a profile file. Everything that is not understood is an error.
    ///
    /// - Parameters:
    ///   - text: The TOML text.
    ///   - file: The name for error messages.
    /// - Throws: `TOMLError` with the position and the valid form.
    package init(parsing text: String, file: String) throws(TOMLError) {
        try self.init(TOMLDocument(parsing: text, file: file))
    }

    init(_ document: TOMLDocument) throws(TOMLError) {
        let table = TOMLTable(document)
        try table.allow([
            "name", "title", "ports", "capabilities", "timeout_hint", "error_pointer", "recognition", "identity",
            "authentication", "session", "rpc", "tool", "functions", "limit",
        ])
        name = try Self.name(table)
        title = try table.line("title") ?? name
        ports = try Self.ports(table)
        capabilities = try table.list("capabilities", of: .text)
        timeoutHint = try table.line("timeout_hint")
        errorPointer = try table.pointer("error_pointer")
        authentication = try table.value("authentication", AuthenticationMethod.init(_:)) ?? .none
        session = try table.value("session", ProfileSessionSpec.init(_:))
        functions = try table.value("functions", FunctionListTemplate.init(_:))
        recognition = try table.list("recognition", RecognitionStep.init(_:))
        guard recognition.contains(where: { $0.schema != nil }) else {
            throw table.error("recognition", "must have a request with json, or other servers would match")
        }
        let paths = recognition.compactMap(\.template.path.literal)
        identity =
            try table.value("identity") { identity throws(TOMLError) in try IdentitySource(identity, paths: paths) }
            ?? IdentitySource()
        tools = try Self.tools(table, session)
        guard !tools.isEmpty || functions != nil else {
            throw table.error("tool", "is missing; a profile needs a [[tool]] or [functions]")
        }
        let names = tools.map(\.name)
        limits = try table.list("limit") { limit throws(TOMLError) in try ProfileLimitation(limit, tools: names) }
        var templates = recognition.map(\.template) + tools.map(\.template)
        templates += (session?.templates ?? []) + (functions?.templates ?? [])
        if case .exchange(let template) = authentication { templates.append(template) }
        literalPaths = Set(templates.compactMap(\.path.literal))
    }

    private static func name(_ table: TOMLTable) throws(TOMLError) -> String {
        let name = try table.required("name", "a name of small letters, digits and hyphens in quotes") { json in
            json.string.flatMap { $0.wholeMatch(of: #/[a-z][a-z0-9-]{0,31}/#) == nil ? nil : $0 }
        }
        guard !EndpointKind.builtIn.contains(EndpointKind(name)) else {
            throw table.error("name", "is \"\(name)\", which is one of Patchbay's own kinds; use another name")
        }
        return name
    }

    private static func ports(_ table: TOMLTable) throws(TOMLError) -> [UInt16] {
        let ports = try table.list("ports", of: .port)
        guard ports.count <= portLimit else {
            throw table.error("ports", "has \(ports.count) ports; at most \(portLimit) are possible")
        }
        return ports
    }

    private static func tools(_ table: TOMLTable, _ session: ProfileSessionSpec?) throws(TOMLError) -> [ProfileTool] {
        let rpcPath = try table.value("rpc") { rpc throws(TOMLError) in
            try rpc.allow(["path"])
            return try RequestTemplate.path(rpc)
        }
        var names: Set<String> = []
        return try table.list("tool") { table throws(TOMLError) in
            let tool = try ProfileTool(table, rpcPath: rpcPath, session: session)
            guard names.insert(tool.name).inserted else {
                throw table.error("name", "is \"\(tool.name)\", which is the name of another tool")
            }
            return tool
        }
    }
}

extension AuthenticationMethod {
    /// Parses the table `[authentication]`.
    fileprivate init(_ table: TOMLTable) throws(TOMLError) {
        let types = ["none", "bearer", "exchange"]
        let shape = "\"none\", \"bearer\" or \"exchange\""
        let type = try table.required("type", shape) { $0.string.flatMap { types.contains($0) ? $0 : nil } }
        if type != "exchange" { try table.allow(["type"]) }
        switch type {
        case "bearer": self = .bearer
        case "exchange":
            let template = try RequestTemplate(table, placeholders: ["new_token"], otherKeys: ["type"])
            guard template.body != nil, template.path.placeholders.isEmpty, !template.placeholders.isEmpty else {
                throw table.error("body", "must have the placeholder {new_token}")
            }
            self = .exchange(template)
        default: self = .none
        }
    }
}

extension ProfileLimitation {
    /// Parses a table of `[[limit]]`.
    fileprivate init(_ table: TOMLTable, tools: [String]) throws(TOMLError) {
        try table.allow(["text", "missing", "instead"])
        text = try table.requiredLine("text", "it must be a text in quotes")
        missingTools = try table.list("missing", of: .text)
        alternative = try table.text("instead")
        if let alternative, !tools.contains(alternative) {
            let suggestion = SimilarNameFinder.suggestion(for: alternative, among: tools, listedAs: "tools")
            throw table.error("instead", "is \"\(alternative)\", which is not a tool\(suggestion)")
        }
    }
}

extension TOMLTable {
    /// Returns a text for people and agents: one line without control characters.
    func line(_ key: String) throws(TOMLError) -> String? {
        try optional(key, "one line of text without control characters") { json in
            json.string.flatMap { $0.isEmpty || SanitizedText($0, limit: .max).text != $0 ? nil : $0 }
        }
    }

    /// Returns such a line. `rule` ends the error of a missing one.
    func requiredLine(_ key: String, _ rule: String) throws(TOMLError) -> String {
        guard let line = try line(key) else { throw error(key, "is missing; \(rule)") }
        return line
    }

    /// Returns the value of a table; nil without the table.
    func value<Value>(
        _ key: String,
        _ parse: (TOMLTable) throws(TOMLError) -> Value
    ) throws(TOMLError) -> Value? {
        guard let table = try table(key) else { return nil }
        return try parse(table)
    }

    /// Returns the value of a table that must exist.
    func requiredValue<Value>(
        _ key: String,
        _ parse: (TOMLTable) throws(TOMLError) -> Value
    ) throws(TOMLError) -> Value {
        guard let value = try value(key, parse) else { throw error(key, "is missing; it must be a table") }
        return value
    }

    /// Returns the values of the tables `[[key]]`.
    func list<Value>(
        _ key: String,
        _ parse: (TOMLTable) throws(TOMLError) -> Value
    ) throws(TOMLError) -> [Value] {
        var values: [Value] = []
        for table in try tables(key) { values.append(try parse(table)) }
        return values
    }
}
