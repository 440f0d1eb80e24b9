import AccessControl
import JSON
import Model
import Registry

/// `endpoint_list`.
extension BrokerMCPServer {
    enum StateFilter: String, CaseIterable {
        case online, offline, any

        func admits(_ endpoint: Endpoint) -> Bool {
            switch self {
            case .online: endpoint.state == .online || endpoint.state == .suspect
            case .offline: endpoint.state == .offline || endpoint.state == .blocked
            case .any: true
            }
        }
    }

    /// Rows of one answer.
    static let pageSize = 50

    func list(_ arguments: ToolArguments, _ caller: AgentCaller) async throws(ToolError) -> ToolResult {
        try check(.registryRead, caller)
        let filter = try arguments.text("endpoint") ?? ""
        let state = try arguments.word("state", as: StateFilter.self) ?? .any
        let cursor = try arguments.text("cursor") ?? ""
        let revision = await registry.revision
        let all = await seen(by: caller)
        let fitting = all.filter { state.admits($0) && $0.fits(filter) && $0.id.text > cursor }
        let page = await rows(Array(fitting.prefix(Self.pageSize)))
        var structure: JSONObject = [
            "rev": .number(JSONNumber(Int(clamping: revision))), "endpoints": .array(page.map { .object($0.json) }),
        ]
        let rest = fitting.count - page.count
        let next = rest > 0 ? page.last?.endpoint.id.text : nil
        structure["next"] = next.map(JSON.string)
        return ToolResult(Self.text(page, more: next.map { "\(rest) more: cursor \($0)" }, of: all.count), structure)
    }

    private static func text(_ page: [EndpointSummary], more: String?, of all: Int) -> String {
        guard !page.isEmpty else {
            guard all == 0 else { return "none fits; ask without endpoint, state and cursor for all \(all)" }
            return "none: start a debug build or plug a phone in, then endpoint_wait for it"
        }
        // Those of one status in one line: ten of them have to fit into two kilobytes, beside their structure.
        var lines: [(status: String, ids: [String])] = []
        for row in page {
            if let index = lines.firstIndex(where: { $0.status == row.status }) {
                lines[index].ids.append(row.endpoint.id.text)
            } else {
                lines.append((row.status, [row.endpoint.id.text]))
            }
        }
        // Some clients show the text alone.
        let rest = more.map { [$0] } ?? []
        return (lines.map { "\($0.status): \($0.ids.joined(separator: ", "))" } + rest).joined(separator: "\n")
    }
}

/// `endpoint_tools` and `endpoint_call`: what an app can do, and doing it.
extension BrokerMCPServer {
    func tools(_ arguments: ToolArguments, _ caller: AgentCaller) async throws(ToolError) -> ToolResult {
        try check(.endpointCall, caller)
        let endpoint = try await endpoint(try arguments.required("endpoint"), caller)
        let list: CachedToolList
        do { list = try await apps.tools(of: endpoint, for: caller) } catch {
            throw ToolError(error.sentence(for: .agent))
        }
        var structure: JSONObject = ["endpoint": .string(endpoint.id.text)]
        if let staleness = list.staleness {
            structure["stale"] = true
            structure["reason"] = .string(staleness.sentence(for: .agent))
        }
        if list.hasChanged { structure["changed"] = true }
        if let name = try arguments.text("name") {
            guard let tool = list.tools.first(where: { $0["name"]?.string == name }) else {
                let near = NearTools(name, list.tools)
                throw ToolError(
                    "\(endpoint.id) has no tool \"\(SanitizedText(name))\"\(near): endpoint_tools without name lists them"
                )
            }
            let cleaned = DisplayTextSanitizer.cleaned(.object(tool))
            structure["tool"] = cleaned
            return ToolResult(cleaned.text, structure)
        }
        let query = try arguments.text("query")?.lowercased() ?? ""
        let hints = list.tools.map(ToolSummary.init).filter { $0.fits(query) }
        structure["tools"] = .array(hints.map(\.json))
        guard !hints.isEmpty else {
            return ToolResult(list.tools.isEmpty ? "it has no tools" : "no tool fits the query", structure)
        }
        var lines = hints.map(\.line)
        if let staleness = list.staleness {
            lines.insert("\(staleness.sentence(for: .agent)); this is what it offered last", at: 0)
        }
        if list.hasChanged { lines.insert("these are other tools than at the last look", at: 0) }
        return ToolResult(lines.joined(separator: "\n"), structure)
    }

    func call(
        _ arguments: ToolArguments,
        _ caller: AgentCaller,
        notify: (@Sendable (RPCNotification) -> Void)?
    ) async throws(ToolError) -> JSONObject {
        try check(.endpointCall, caller)
        let endpoint = try await endpoint(try arguments.required("endpoint"), caller)
        let call = ToolCall(
            try arguments.required("name"),
            of: endpoint,
            arguments: try arguments.object("arguments") ?? [:],
            wait: .seconds(try arguments.number("wait_s", in: 0...60) ?? 10),
            patience: try arguments.number("timeout_s", in: 1...120).map { .seconds($0) },
            maxPixels: try arguments.number("max_px", in: 0...4_096) ?? 1_568,
            notify: notify
        )
        do { return try await apps.call(call, of: caller) } catch { return error.result(for: .agent) }
    }
}

/// `endpoint_pair`: what stands between an agent and an app. It never gives a token back.
extension BrokerMCPServer {
    enum PairingState: String {
        /// It may be called.
        case paired
        /// Its token is kept, and it could not be asked whether it takes it.
        case kept
        /// It wants its token.
        case needsCode = "needs_code"
        /// A person has to say yes.
        case needsApproval = "needs_approval"
        /// The caller may not.
        case denied
    }

    func pair(_ arguments: ToolArguments, _ caller: AgentCaller) async throws(ToolError) -> ToolResult {
        try check(.registryRead, caller)
        let endpoint = try await endpoint(try arguments.required("endpoint"), caller)
        guard let code = try arguments.text("code") else { return await state(of: endpoint, caller) }
        guard caller.may(.secretUse) else {
            return Self.result(.denied, endpoint, "what you were granted does not allow secret.use")
        }
        let isTaken: Bool?
        do {
            let pasted = SessionTokenInput(code)
            let secret = try EndpointSecret(pasted.token)
            // One that names another port is for a launch that is not there yet.
            let isForLaunch = pasted.port == nil || pasted.port == endpoint.routes.first?.port
            isTaken = isForLaunch ? await apps.takes(secret, at: endpoint, for: caller) : nil
            if isTaken == false {
                return Self.result(
                    .needsCode,
                    endpoint,
                    "the app does not take that token, so it was not kept; \(Self.wherefrom(endpoint.id))"
                )
            }
            // A bare token is for the launch that takes it, which may be one that has not been seen.
            let isForUnseen = isTaken == nil && pasted.port == nil
            try await trust.keep(secret, of: endpoint, on: pasted.port, isForUnseen: isForUnseen, for: caller)
        } catch {
            // Whatever the code was, it is not said again.
            throw ToolError("\(endpoint.id) was not paired: \(error)")
        }
        guard isTaken == true else {
            return Self.result(.kept, endpoint, "the app cannot be asked now; endpoint_wait for it, then endpoint_call")
        }
        return Self.result(.paired, endpoint, "the app takes the token; it is kept for this launch")
    }

    private func state(of endpoint: Endpoint, _ caller: AgentCaller) async -> ToolResult {
        let id = endpoint.id
        guard endpoint.approval == .approved else {
            return Self.result(.needsApproval, endpoint, "a person has to type: patchbay approve \(id)")
        }
        let isOpen: Bool
        switch await apps.isOpen(endpoint, for: caller) {
        case let answer?: isOpen = answer
        // It cannot be asked: what its advert says has to do.
        case nil:
            let needsToken = endpoint.wantsToken && caller.may(.secretUse, on: endpoint)
            isOpen = if needsToken { await !trust.held(of: [endpoint]).isEmpty } else { !endpoint.wantsToken }
        }
        if isOpen { return Self.result(.paired, endpoint, "endpoint_call can be used") }
        guard caller.may(.secretUse, on: endpoint) else {
            return Self.result(
                .denied,
                endpoint,
                "it wants its token, and what you were granted does not allow secret.use"
            )
        }
        return Self.result(.needsCode, endpoint, Self.wherefrom(id))
    }

    private static func wherefrom(_ id: EndpointID) -> String {
        """
        the app logs "Session URL: …" at each launch; give the newest here as code, or ask the person to type: \
        patchbay secret set \(id)
        """
    }

    private static func result(_ state: PairingState, _ endpoint: Endpoint, _ next: String) -> ToolResult {
        ToolResult(
            "\(endpoint.id) \(state.rawValue): \(next)",
            ["endpoint": .string(endpoint.id.text), "state": .string(state.rawValue), "next": .string(next)]
        )
    }
}

/// One tool of an app in one line.
struct ToolSummary: Hashable, Sendable {
    private static let limit = 100

    let name: String
    let text: String

    init(_ tool: JSONObject) {
        name = SanitizedText(tool["name"]?.string ?? "", limit: 128).text
        let first = (tool["description"] ?? tool["title"])?.string?.split(whereSeparator: \.isNewline).first ?? ""
        text = SanitizedText(first, limit: Self.limit).text
    }

    func fits(_ query: String) -> Bool {
        query.isEmpty || name.lowercased().contains(query) || text.lowercased().contains(query)
    }

    var line: String { text.isEmpty ? name : "\(name): \(text)" }

    var json: JSON { text.isEmpty ? ["name": .string(name)] : ["name": .string(name), "hint": .string(text)] }
}
