import Model
import TOML

extension ProfileTool {
    /// The timeout without the key `timeout`, and the allowed timeouts, in seconds.
    static let defaultTimeout = 15
    static let timeouts = 1...600

    static func isName(_ text: String) -> Bool { text.wholeMatch(of: #/[A-Za-z0-9_-]{1,48}/#) != nil }

    /// Parses a table of `[[tool]]`.
    init(_ table: TOMLTable, rpcPath: PathTemplate?, session: ProfileSessionSpec?) throws(TOMLError) {
        isRPC = table.values["rpc"] != nil
        try table.allow(
            [
                "name", "title", "description", "arguments", "required", "timeout", "read_only", "idempotent",
                "session", "result",
            ] + (isRPC ? ["rpc", "params"] : RequestTemplate.keys + ["rpc"])
        )
        name = try table.required("name", "a name of letters, digits, _ and - in quotes") { json in
            json.string.flatMap { Self.isName($0) ? $0 : nil }
        }
        title = try table.line("title")
        description = try table.requiredLine("description", "it must tell an agent the use of the tool")
        timeout = .seconds(try table.duration("timeout", in: Self.timeouts)?.seconds ?? Self.defaultTimeout)
        isReadOnly = try table.flag("read_only")
        isIdempotent = try table.flag("idempotent") || isReadOnly
        needsSession = try table.flag("session")
        if needsSession, session == nil { throw table.error("session", "is true, but the profile has no [session]") }
        let schema = try Self.schema(table)
        arguments = .declared(schema)
        result = try ResultFormat(table)
        template = try isRPC ? Self.rpc(table, rpcPath, schema) : RequestTemplate(table)
        let hasPathSession = needsSession && session?.header == nil
        try Self.check(table, template, schema, result, hasPathSession: hasPathSession)
    }

    private static func schema(_ table: TOMLTable) throws(TOMLError) -> JSONSchema {
        var properties = JSONObject()
        if let arguments = try table.table("arguments") {
            for member in arguments.values.members where !Placeholder.isName(member.name) || member.name == "session" {
                throw arguments.error(member.name, "cannot be the name of an argument; use letters, digits and _")
            }
            properties = try JSONSchema.properties(arguments)
        }
        let required = try table.list("required", of: .text)
        for name in required where properties[name] == nil {
            let names = properties.members.map(\.name)
            let suggestion = SimilarNameFinder.suggestion(for: name, among: names, listedAs: "arguments")
            throw table.error("required", "has \"\(name)\", which is not an argument\(suggestion)")
        }
        return JSONSchema(properties: properties, required: required)
    }

    /// Returns the request of a JSON-RPC method. Without `params`, all arguments are the parameters.
    private static func rpc(
        _ table: TOMLTable,
        _ path: PathTemplate?,
        _ schema: JSONSchema
    ) throws(TOMLError) -> RequestTemplate {
        let method = try table.requiredText("rpc")
        guard let path else { throw table.error("rpc", "needs the path of JSON-RPC in the table [rpc]") }
        let all = schema.properties.map { JSONObject.Member(name: $0.name, value: .string("{\($0.name)}")) }
        let params = try RequestTemplate.json(table, "params") ?? .object(JSONObject(all))
        return RequestTemplate(
            method: .post,
            path: path,
            body: ["jsonrpc": "2.0", "id": 1, "method": .string(method), "params": params]
        )
    }

    /// Checks that placeholders and arguments match.
    private static func check(
        _ table: TOMLTable,
        _ template: RequestTemplate,
        _ schema: JSONSchema,
        _ result: ResultFormat,
        hasPathSession: Bool
    ) throws(TOMLError) {
        let names = schema.properties.map(\.name)
        let known = names + (hasPathSession ? ["session"] : [])
        try template.check(table, known, "arguments", because: ", which is not an argument")
        for property in schema.properties {
            let name = property.name
            let isOptional = !schema.required.contains(name) && property.value["default"] == nil
            if isOptional, template.path.requiredPlaceholders.contains(name) {
                throw table.error("path", "has the placeholder {\(name)}, so the argument must be in required")
            }
            guard template.placeholders.contains(name) || result.usedArguments.contains(name) else {
                throw table.error("arguments", "has \"\(name)\", which neither the request nor the result uses")
            }
        }
        for name in result.usedArguments where !names.contains(name) {
            throw table.error("result", "uses the argument \"\(name)\", which does not exist")
        }
    }
}

extension ResultFormat {
    /// Parses the table `result` of a tool. Without it, the result is JSON.
    fileprivate init(_ tool: TOMLTable) throws(TOMLError) {
        guard let table = try tool.table("result") else {
            self = .json(JSONSelection())
            return
        }
        let types = ["json", "text", "image", "base64-image", "video"]
        let type = try table.required("type", "one of \(types.joined(separator: ", "))") { json in
            json.string.flatMap { types.contains($0) ? $0 : nil }
        }
        let pointer = try table.pointer("pointer")
        switch type {
        case "text":
            try table.allow(["type", "pointer"])
            self = .text(pointer)
        case "image":
            try table.allow(["type"])
            self = .image
        case "base64-image":
            try table.allow(["type", "pointer"])
            self = .base64Image(pointer ?? .root)
        case "video":
            try table.allow(["type"])
            self = .video
        default:
            try table.allow(["type", "pointer", "pointer_argument", "limit", "limit_argument"])
            self = .json(
                JSONSelection(
                    pointer: pointer ?? .root,
                    pointerArgument: try table.text("pointer_argument"),
                    limit: try table.number("limit", in: 1...Profile.bodyLimit),
                    limitArgument: try table.text("limit_argument")
                )
            )
        }
    }

    /// The arguments that select the result and are not sent.
    fileprivate var usedArguments: [String] {
        guard case .json(let selection) = self else { return [] }
        return [selection.pointerArgument, selection.limitArgument].compactMap { $0 }
    }
}
