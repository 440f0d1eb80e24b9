import Crypto
package import JSON
import Model
import Registry
import SystemIO

/// All apps at one address, `/all/mcp`: the tools of each under names that say whose they are.
///
/// Which tools are listed depends on what the caller may call and on nothing else: an app that is away keeps its tools in the
/// list, one that is slow or broken takes no other's time.
package struct AggregateMCPServer: MCPServer {
    private let desk: AppProxy

    package init(desk: AppProxy) { self.desk = desk }

    package func description(for caller: AgentCaller) async -> ServerDescription {
        ServerDescription(
            info: ["name": "patchbay-all", "title": "Patchbay: all apps", "version": .string(Version.text)],
            capabilities: ["tools": ["listChanged": true]],
            instructions:
                "Every tool belongs to one running app: its name begins with the app's alias and two underscores."
        )
    }

    package func answer(_ request: MCPRequest, of caller: AgentCaller) async throws(RPCError) -> JSONObject {
        switch request.method {
        case "tools/list":
            try request.checkPage()
            return ["tools": .array(await tools(for: caller))]
        case "tools/call": return try await call(request, caller)
        default: throw .unknownMethod(request.method)
        }
    }

    package func parameterHeaders(of tool: String, for caller: AgentCaller) async -> ParameterHeaders {
        guard let (endpoint, name) = await owner(of: tool, for: caller) else { return .none }
        guard await desk.parameterHeaders(of: name, at: endpoint.id, for: caller) != .none else { return .none }
        // By the schema as it is listed here, where a very long one is left out.
        return ParameterHeaders(of: AggregatedTool.schema(await desk.schema(of: name, at: endpoint.id)))
    }

    package func changes(for caller: AgentCaller) -> AsyncStream<ServerChange> { desk.changes(for: caller) }

    private func endpoints(for caller: AgentCaller) async -> [(alias: String, endpoint: Endpoint)] {
        var taken: Set<String> = []
        return await desk.registry.endpoints.compactMap { endpoint in
            guard AppProxy.speaksMCP(endpoint.kind), caller.may(.endpointCall, on: endpoint) else { return nil }
            let alias = ToolNamespace.alias(of: endpoint.id)
            // Sorted by id: of two with one alias it is always the same that has it.
            return taken.insert(alias).inserted ? (alias, endpoint) : nil
        }
    }

    private func tools(for caller: AgentCaller) async -> [JSON] {
        let endpoints = await endpoints(for: caller)
        return await withTaskGroup(of: (Int, [JSON]).self) { group in
            for (index, (alias, endpoint)) in endpoints.enumerated() {
                group.addTask {
                    let tools = await desk.toolsAtOnce(of: endpoint, for: caller)
                    return (
                        index,
                        tools.compactMap { tool in
                            tool.object.flatMap { AggregatedTool.make(of: $0, on: endpoint, alias: alias) }.map {
                                .object($0)
                            }
                        }
                    )
                }
            }
            var all: [(Int, [JSON])] = []
            for await some in group { all.append(some) }
            // Of two names of one app's that are cut, the hashes may be the same.
            return ToolListSanitizer.pass(all.sorted { $0.0 < $1.0 }.flatMap(\.1))
        }
    }

    /// The app that a listed tool belongs to, and what it calls it.
    private func owner(of name: String, for caller: AgentCaller) async -> (Endpoint, tool: String)? {
        guard let (alias, listed) = ToolNamespace.parts(of: name),
            let endpoint = await endpoints(for: caller).first(where: { $0.alias == alias })?.endpoint
        else { return nil }
        return (endpoint, await desk.tool(listedAs: name, alias: alias, of: endpoint.id) ?? listed)
    }

    private func call(_ request: MCPRequest, _ caller: AgentCaller) async throws(RPCError) -> JSONObject {
        guard let name = request.tool else {
            throw .invalidParams("tools/call must have the tool's name, a text")
        }
        guard let (endpoint, tool) = await owner(of: name, for: caller) else {
            throw .invalidParams("there is no tool of this name; tools/list has them all")
        }
        let alias = ToolNamespace.alias(of: endpoint.id)
        return try await AppMCPServer(endpoint.id, desk: desk, alias: alias).answer(
            request.with(request.params.with("name", .string(tool))),
            of: caller
        )
    }
}

extension JSONObject {
    fileprivate func with(_ name: String, _ value: JSON) -> JSONObject {
        var object = self
        object[name] = value
        return object
    }
}

/// What is asked of apps for the list of all.
extension AppProxy {
    /// An app's tools, live if it answers at once, else as they were; none where it was never heard.
    func toolsAtOnce(of endpoint: Endpoint, for caller: AgentCaller) async -> [JSON] {
        let fresh = try? await withDeadline(limits.oneOfAll, clock: clock) { [self] in
            try await freshList(CachedApp.tools, of: endpoint.id, for: caller, wait: .zero)
        }
        if let list = fresh ?? nil { return list["tools"]?.array ?? [] }
        return await shelvedList(CachedApp.tools, of: endpoint.id)?["tools"]?.array ?? []
    }

    /// A tool's schema for its arguments; nil where its app's list does not have it.
    func schema(of tool: String, at id: EndpointID) async -> JSON? {
        let tools = await shelf.record(of: id).list(of: CachedApp.tools)?["tools"]?.array
        return tools?.first { $0["name"]?.string == tool }?["inputSchema"]
    }

    /// An app's own name of the tool that is listed under that name; nil where its list does not have it.
    func tool(listedAs name: String, alias: String, of id: EndpointID) async -> String? {
        await shelf.record(of: id).list(of: CachedApp.tools)?["tools"]?.array?.lazy.compactMap { $0["name"]?.string }
            .first { ToolNamespace.name(of: $0, alias: alias) == name }
    }
}

/// An app's tool as it stands in the list of all apps' tools: whose it is comes first, and what the app wrote is kept short.
enum AggregatedTool {
    static let descriptionLimit = 160
    /// Of a schema, in bytes; a longer one is left out, the app checks its arguments itself.
    private static let schemaLimit = 16 * 1_024

    static func make(of tool: JSONObject, on endpoint: Endpoint, alias: String) -> JSONObject? {
        guard let name = tool["name"]?.string else { return nil }
        let place =
            endpoint.place.host.map { " on \($0.text)" } ?? endpoint.place.udid.map { " on phone \($0.text.suffix(6))" }
            ?? ""
        let app = endpoint.app.isEmpty ? endpoint.name : endpoint.app
        let text = "[\(SanitizedText("\(app.text)\(place)", limit: 80))] \(tool["description"]?.string ?? name)"
        var listed: JSONObject = [
            "name": .string(ToolNamespace.name(of: name, alias: alias)),
            "description": .string(cut(SanitizedText(text, limit: 1_024).text)),
            "inputSchema": schema(tool["inputSchema"]) ?? ["type": "object"],
        ]
        listed["outputSchema"] = schema(tool["outputSchema"])
        listed["annotations"] = annotations(tool["annotations"])
        return listed
    }

    private static func cut(_ text: String) -> String {
        text.count <= descriptionLimit ? text : "\(text.prefix(descriptionLimit - 1))…"
    }

    static func schema(_ schema: JSON?) -> JSON? {
        guard let schema, schema.object != nil, schema.bytes.count <= schemaLimit else { return nil }
        return schema
    }

    /// Truth values only: a title is a text, and may say anything.
    private static func annotations(_ annotations: JSON?) -> JSON? {
        let hints = annotations?.object?.members.filter { $0.value.bool != nil } ?? []
        return hints.isEmpty ? nil : .object(JSONObject(hints))
    }
}

/// The names of apps' tools where all are listed together: `<alias>__<tool>`.
///
/// Letters, digits, `_` and `-`, at most 48 of them: clients put their own prefix before it and have limits of 60 or 64.
/// What had to be changed or cut ends with four hexadecimal digits of the whole, so that two tools never get one name.
enum ToolNamespace {
    static let limit = 48
    static let aliasLimit = 16
    static let separator = "__"

    /// An id has no `_`, so that the first two of them end the alias.
    static func alias(of id: EndpointID) -> String { fit(id.text, aliasLimit) }

    static func name(of tool: String, alias: String) -> String {
        "\(alias)\(separator)\(fit(tool, limit - alias.utf8.count - separator.utf8.count))"
    }

    /// - Returns: Nil when it is no such name.
    static func parts(of name: String) -> (alias: String, tool: String)? {
        guard let range = name.firstRange(of: separator), range.lowerBound > name.startIndex,
            range.upperBound < name.endIndex
        else { return nil }
        return (String(name[..<range.lowerBound]), String(name[range.upperBound...]))
    }

    private static func fit(_ text: String, _ limit: Int) -> String {
        let safe = String(text.map { character in isSafe(character) ? character : "_" })
        if safe == text, text.utf8.count <= limit, !text.isEmpty { return text }
        let hash = SHA256.hash(data: Array(text.utf8)).prefix(2).map { byte in
            byte < 16 ? "0" + String(byte, radix: 16) : String(byte, radix: 16)
        }
        return "\(safe.prefix(limit - 5))-\(hash.joined())"
    }

    private static func isSafe(_ character: Character) -> Bool {
        character.isASCII && (character.isLetter || character.isNumber || character == "_" || character == "-")
    }
}
