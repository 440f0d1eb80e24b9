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
        let table = TOMLTable(try TOMLDocument(parsing: text, file: file))
        try table.allow([
            "name", "title", "ports", "capabilities", "timeout_hint", "error_pointer", "recognition", "identity",
            "authentication", "session", "rpc", "tool", "functions", "limit",
        ])
        name = try table.required("name", "a name of small letters, digits and hyphens in quotes") { json in
            json.string.flatMap { $0.wholeMatch(of: #/[a-z][a-z0-9-]{0,31}/#) == nil ? nil : $0 }
        }
        guard !EndpointKind.builtIn.contains(EndpointKind(name)) else {
            throw table.error("name", "is \"\(name)\", which is one of Patchbay's own kinds; use another name")
        }
        title = try table.line("title") ?? name
        ports = try table.list("ports", of: "a number from 1 to 65535") { json in
            json.int.flatMap(UInt16.init(exactly:)).flatMap { $0 > 0 ? $0 : nil }
        }
        guard ports.count <= Self.portLimit else {
            throw table.error("ports", "has \(ports.count) ports; at most \(Self.portLimit) are possible")
        }
        capabilities = try table.list("capabilities", of: "a text in quotes", \.string)
        timeoutHint = try table.line("timeout_hint")
        errorPointer = try table.pointer("error_pointer")
        authentication =
            try table.table("authentication").map { table throws(TOMLError) in
                try AuthenticationMethod(table)
            } ?? .none
        session = try table.table("session").map { table throws(TOMLError) in try SessionSpec(table) }
        functions = try table.table("functions").map { table throws(TOMLError) in try FunctionListTemplate(table) }

        var recognition: [RecognitionStep] = []
        for table in try table.tables("recognition") { recognition.append(try RecognitionStep(table)) }
        guard recognition.contains(where: { $0.schema != nil }) else {
            throw table.error("recognition", "must have a request with json, or other servers would match")
        }
        self.recognition = recognition
        let paths = recognition.compactMap(\.template.path.literal)
        identity =
            try table.table("identity").map { table throws(TOMLError) in try IdentitySource(table, paths: paths) }
            ?? IdentitySource()

        var rpcPath: PathTemplate?
        if let rpc = try table.table("rpc") {
            try rpc.allow(["path"])
            rpcPath = try RequestTemplate.path(rpc)
        }
        var tools: [ProfileTool] = []
        for table in try table.tables("tool") {
            let tool = try ProfileTool(table, rpcPath: rpcPath, session: session)
            guard !tools.contains(where: { $0.name == tool.name }) else {
                throw table.error("name", "is \"\(tool.name)\", which is the name of another tool")
            }
            tools.append(tool)
        }
        guard !tools.isEmpty || functions != nil else {
            throw table.error("tool", "is missing; a profile needs a [[tool]] or [functions]")
        }
        self.tools = tools
        var limits: [ProfileLimitation] = []
        for table in try table.tables("limit") { limits.append(try ProfileLimitation(table, tools: tools.map(\.name))) }
        self.limits = limits
        var templates = recognition.map(\.template) + tools.map(\.template)
        templates += (session?.templates ?? []) + (functions?.templates ?? [])
        if case .exchange(let template) = authentication { templates.append(template) }
        literalPaths = Set(templates.compactMap(\.path.literal))
    }
}

extension AuthenticationMethod {
    /// Parses the table `[authentication]`.
    fileprivate init(_ table: TOMLTable) throws(TOMLError) {
        let types = ["none", "bearer", "exchange"]
        let shape = "\"none\", \"bearer\" or \"exchange\""
        let type = try table.required("type", shape) { $0.string.flatMap { types.contains($0) ? $0 : nil } }
        try table.allow(["type"] + (type == "exchange" ? RequestTemplate.keys : []))
        switch type {
        case "bearer": self = .bearer
        case "exchange":
            let template = try RequestTemplate(table, placeholders: ["new_token"])
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
        guard let text = try table.line("text") else {
            throw table.error("text", "is missing; it must be a text in quotes")
        }
        self.text = text
        missingTools = try table.list("missing", of: "a text in quotes", \.string)
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
}
