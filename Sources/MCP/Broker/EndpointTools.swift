import AccessControl
import JSON
import Model
import Registry

/// The tool `endpoint_list`.
extension BrokerMCPServer {
    /// The argument `state` of `endpoint_list`.
    enum StateFilter: String, CaseIterable {
        case online, offline, any

        func includes(_ endpoint: Endpoint) -> Bool {
            switch self {
            case .online: endpoint.state == .online || endpoint.state == .suspect
            case .offline: endpoint.state == .offline || endpoint.state == .blocked
            case .any: true
            }
        }
    }

    /// The maximum number of endpoints in one result.
    static let pageSize = 50

    func list(_ arguments: ToolArguments, _ caller: AgentCaller) async throws(ToolError) -> ToolResult {
        try requireScope(.registryRead, for: caller)
        let filter = try arguments.text("endpoint") ?? ""
        let state = try arguments.word("state", as: StateFilter.self) ?? .any
        let cursor = try arguments.text("cursor") ?? ""
        let revision = await registry.revision
        let all = await visibleEndpoints(to: caller)
        let matching = all.filter { state.includes($0) && $0.matches(filter) && $0.id.text > cursor }
        let page = await summaries(of: Array(matching.prefix(Self.pageSize)))
        var structure: JSONObject = [
            "revision": .number(JSONNumber(Int(clamping: revision))),
            "endpoints": .array(page.map { .object($0.json) }),
        ]
        let rest = matching.count - page.count
        let next = rest > 0 ? page.last?.endpoint.id.text : nil
        structure["nextCursor"] = next.map(JSON.string)
        return ToolResult(Self.text(page, more: next.map { "\(rest) more: cursor \($0)" }, of: all.count), structure)
    }

    private static func text(_ page: [EndpointSummary], more: String?, of all: Int) -> String {
        guard !page.isEmpty else {
            guard all == 0 else { return "none matches; ask without endpoint, state and cursor for all \(all)" }
            return "none: start a debug build or plug a phone in, then endpoint_wait for it"
        }
        // Endpoints with the same status share a line: text and structure of ten endpoints must fit in 2.2 kB.
        var lines: [(status: String, ids: [String])] = []
        for summary in page {
            if let index = lines.firstIndex(where: { $0.status == summary.status }) {
                lines[index].ids.append(summary.endpoint.id.text)
            } else {
                lines.append((summary.status, [summary.endpoint.id.text]))
            }
        }
        // Clients that show only the text need the cursor too.
        let rest = more.map { [$0] } ?? []
        return (lines.map { "\($0.status): \($0.ids.joined(separator: ", "))" } + rest).joined(separator: "\n")
    }
}

/// The tools `endpoint_tools` and `endpoint_call`: list an app's tools and call them.
extension BrokerMCPServer {
    func tools(_ arguments: ToolArguments, _ caller: AgentCaller) async throws(ToolError) -> ToolResult {
        try requireScope(.endpointCall, for: caller)
        let endpoint = try await endpoint(matching: try arguments.required("endpoint"), for: caller)
        let list: CachedToolList
        do { list = try await apps.tools(of: endpoint, for: caller) } catch {
            throw ToolError(error.message(for: .brokerAgent))
        }
        var structure: JSONObject = ["endpoint": .string(endpoint.id.text)]
        if let staleness = list.staleness {
            structure["stale"] = true
            structure["reason"] = .string(staleness.message(for: .brokerAgent))
        }
        if list.hasChanged { structure["changed"] = true }
        if let name = try arguments.text("name") {
            guard let tool = list.tools.first(where: { $0["name"]?.string == name }) else {
                let near = NearTools(name, list.tools)
                throw ToolError(
                    "\(endpoint.id) has no tool \"\(SanitizedText(name))\"\(near): endpoint_tools without name lists them"
                )
            }
            let sanitized = DisplayTextSanitizer.sanitized(.object(tool))
            structure["tool"] = sanitized
            return ToolResult(sanitized.text, structure)
        }
        let query = try arguments.text("query")?.lowercased() ?? ""
        let summaries = list.tools.map(ToolSummary.init).filter { $0.matches(query) }
        structure["tools"] = .array(summaries.map(\.json))
        guard !summaries.isEmpty else {
            return ToolResult(list.tools.isEmpty ? "the app has no tools" : "no tool matches the query", structure)
        }
        var lines = summaries.map(\.line)
        if let staleness = list.staleness {
            lines.insert("\(staleness.message(for: .brokerAgent)); these tools are from the last list", at: 0)
        }
        if list.hasChanged { lines.insert("the tools have changed since the last list", at: 0) }
        return ToolResult(lines.joined(separator: "\n"), structure)
    }

    func call(
        _ arguments: ToolArguments,
        _ caller: AgentCaller,
        notify: (@Sendable (RPCNotification) -> Void)?
    ) async throws(ToolError) -> JSONObject {
        try requireScope(.endpointCall, for: caller)
        let endpoint = try await endpoint(matching: try arguments.required("endpoint"), for: caller)
        let call = ToolCall(
            try arguments.required("name"),
            of: endpoint,
            arguments: try arguments.object("arguments") ?? [:],
            wait: .seconds(try arguments.number("waitSeconds", in: 0...60) ?? 10),
            timeout: try arguments.number("timeoutSeconds", in: 1...120).map { .seconds($0) },
            maxPixels: try arguments.number("maxPixels", in: 0...4_096) ?? 1_568,
            notify: notify
        )
        do { return try await apps.call(call, of: caller) } catch { return error.result(for: .brokerAgent) }
    }
}

/// The tool `endpoint_pair`: reports why an app cannot be called and accepts its token. The token is never returned.
extension BrokerMCPServer {
    /// The result of `endpoint_pair`.
    enum PairingState: String {
        /// The app can be called.
        case paired
        /// The token is stored, but the app could not be asked whether it accepts the token.
        case kept
        /// The app requires its token.
        case needsCode
        /// A person has to approve the endpoint.
        case needsApproval
        /// The caller has no permission.
        case denied
    }

    func pair(_ arguments: ToolArguments, _ caller: AgentCaller) async throws(ToolError) -> ToolResult {
        try requireScope(.registryRead, for: caller)
        let endpoint = try await endpoint(matching: try arguments.required("endpoint"), for: caller)
        guard let code = try arguments.text("code") else { return await state(of: endpoint, caller) }
        guard caller.may(.secretUse) else {
            return Self.result(.denied, for: endpoint, next: "your grant does not allow secret.use")
        }
        let isAccepted: Bool?
        do {
            let pasted = SessionTokenInput(code)
            let secret = try EndpointSecret(pasted.token)
            // A token with another port belongs to a launch that is not visible yet.
            let isForLaunch = pasted.port == nil || pasted.port == endpoint.routes.first?.port
            isAccepted = isForLaunch ? await apps.accepts(secret, at: endpoint, for: caller) : nil
            if isAccepted == false {
                return Self.result(
                    .needsCode,
                    for: endpoint,
                    next: "the app rejects that token, so the token was not stored; \(Self.tokenHint(endpoint.id))"
                )
            }
            // A token without a port belongs to the launch that accepts it, which may not have been seen yet.
            let isForUnseen = isAccepted == nil && pasted.port == nil
            try await approvals.saveSecret(
                secret,
                of: endpoint,
                on: pasted.port,
                isForUnseen: isForUnseen,
                for: caller
            )
        } catch {
            // The error must not contain the token.
            throw ToolError("\(endpoint.id) was not paired: \(error)")
        }
        guard isAccepted == true else {
            return Self.result(
                .kept,
                for: endpoint,
                next:
                    "the app is not reachable now, so the token is stored unchecked; use endpoint_wait, then endpoint_call"
            )
        }
        return Self.result(.paired, for: endpoint, next: "the app accepts the token, which is stored for this launch")
    }

    private func state(of endpoint: Endpoint, _ caller: AgentCaller) async -> ToolResult {
        let id = endpoint.id
        guard endpoint.approval == .approved else {
            return Self.result(.needsApproval, for: endpoint, next: "a person has to type: patchbay approve \(id)")
        }
        let isOpen: Bool
        switch await apps.isOpen(endpoint, for: caller) {
        case let answer?: isOpen = answer
        // The app cannot be asked, so its advertisement decides.
        case nil:
            let needsToken = endpoint.wantsToken && caller.may(.secretUse, on: endpoint)
            isOpen =
                if needsToken { await !approvals.withSecrets(among: [endpoint]).isEmpty } else { !endpoint.wantsToken }
        }
        if isOpen { return Self.result(.paired, for: endpoint, next: "endpoint_call can be used") }
        guard caller.may(.secretUse, on: endpoint) else {
            return Self.result(
                .denied,
                for: endpoint,
                next: "the app requires its token, and your grant does not allow secret.use"
            )
        }
        return Self.result(.needsCode, for: endpoint, next: Self.tokenHint(id))
    }

    private static func tokenHint(_ id: EndpointID) -> String {
        """
        the app logs "Session URL: …" at each launch; give the newest here as code, or ask the person to type: \
        patchbay secret set \(id)
        """
    }

    private static func result(_ state: PairingState, for endpoint: Endpoint, next: String) -> ToolResult {
        ToolResult(
            "\(endpoint.id) \(state.rawValue): \(next)",
            ["endpoint": .string(endpoint.id.text), "state": .string(state.rawValue), "hint": .string(next)]
        )
    }
}

/// A one-line description of an app's tool.
struct ToolSummary: Hashable, Sendable {
    private static let limit = 100

    let name: String
    let text: String

    init(_ tool: JSONObject) {
        name = SanitizedText(tool["name"]?.string ?? "", limit: 128).text
        let first = (tool["description"] ?? tool["title"])?.string?.split(whereSeparator: \.isNewline).first ?? ""
        text = SanitizedText(first, limit: Self.limit).text
    }

    func matches(_ query: String) -> Bool {
        query.isEmpty || name.lowercased().contains(query) || text.lowercased().contains(query)
    }

    var line: String { text.isEmpty ? name : "\(name): \(text)" }

    var json: JSON { text.isEmpty ? ["name": .string(name)] : ["name": .string(name), "description": .string(text)] }
}
