package import JSON
import Logging
package import Model
import Synchronization
import SystemIO

/// What apps offer, live or from the shelf.
extension AppProxy {
    /// A list as a result, and why it is from an earlier time, if it is.
    struct List: Sendable {
        var result: JSONObject
        let staleness: AppError?
    }

    /// The member of a list's result that has the entries; the methods that are kept for the time that an app is away.
    static let members = [
        "tools/list": "tools", "resources/list": "resources", "resources/templates/list": "resourceTemplates",
        "prompts/list": "prompts",
    ]
    /// An app that tells of more pages than that goes round in circles; so does one that says a cursor twice.
    private static let pageLimit = 100
    /// From so many tools on no further page is asked for: no model is given that many.
    private static let toolLimit = 1_000

    package func tools(of endpoint: Endpoint, for caller: AgentCaller) async throws(AppError) -> CachedToolList {
        let list: List
        do {
            list = try await self.list(CachedApp.tools, of: endpoint.id, for: caller, within: limits.list)
        } catch {
            throw Self.failure(error, endpoint.id)
        }
        let hasChanged = await look(at: endpoint.id)
        return CachedToolList(
            tools: list.result["tools"]?.array?.compactMap(\.object) ?? [],
            staleness: list.staleness,
            hasChanged: hasChanged
        )
    }

    package func toolCount(of endpoint: Endpoint) async -> Int? { await shelf.record(of: endpoint.id).toolCount }

    /// What an app's tool wants to have in headers, by the list that its callers have; nothing where they have none.
    func parameterHeaders(of tool: String, at id: EndpointID, for caller: AgentCaller) async -> ParameterHeaders {
        guard let headers = await shelf.record(of: id).traits[tool]?.parameters, headers != .none,
            let endpoint = try? await endpoint(id), caller.may(.endpointCall, on: endpoint)
        else { return .none }
        return headers
    }

    /// Somebody looks at an app's tools.
    ///
    /// - Returns: Whether they are others than when somebody looked last.
    func look(at id: EndpointID) async -> Bool {
        let hasChanged = await shelf.record(of: id).hasChanged
        await shelf.update(id) { $0.look() }
        return hasChanged
    }

    /// Asks the app, and takes what is on the shelf where it does not answer within the limit; one of which nothing is on the
    /// shelf is waited for.
    ///
    /// - Throws: `AppError`, an `RPCError` of the app's own, `CancellationError`.
    func list(
        _ method: String,
        of id: EndpointID,
        for caller: AgentCaller,
        within limit: Duration
    ) async throws -> List {
        guard let shelved = await shelvedList(method, of: id) else {
            let fresh = try await freshList(method, of: id, for: caller, wait: limits.wait)
            return List(result: fresh, staleness: nil)
        }
        do {
            let fresh = try await withDeadline(limit, clock: clock) { [self] in
                try await freshList(method, of: id, for: caller, wait: .zero)
            }
            if let fresh { return List(result: fresh, staleness: nil) }
            let seconds = Int(limit / .seconds(1))
            return List(result: shelved, staleness: .tooSlow(id, seconds: seconds))
        } catch let failure as AppError where Self.isPassing(failure) {
            return List(result: shelved, staleness: failure)
        }
    }

    /// A list as it was heard last; nil when it never was.
    func shelvedList(_ method: String, of id: EndpointID) async -> JSONObject? {
        guard var list = await shelf.record(of: id).list(of: method) else { return nil }
        // It may have been put there by an earlier broker, who looked at it less.
        if method == CachedApp.tools { list["tools"] = .array(ToolListSanitizer.pass(list["tools"]?.array ?? [])) }
        return list
    }

    /// Every page of a list, as one, tools sorted by name; what it was goes on the shelf.
    func freshList(
        _ method: String,
        of id: EndpointID,
        for caller: AgentCaller,
        wait: Duration
    ) async throws -> JSONObject {
        let member = Self.members[method] ?? ""
        var entries: [JSON] = []
        var sieve = method == CachedApp.tools ? ToolListSanitizer() : nil
        var cursor: JSON?
        var cursors: Set<JSON> = []
        var result = JSONObject()
        for _ in 0..<Self.pageLimit {
            var params = JSONObject()
            params["cursor"] = cursor
            result = try await reach(MCPRequest(method, params), at: id, for: caller, wait: wait).outcome.get()
            let page = result[member]?.array ?? []
            entries += sieve == nil ? page : page.compactMap { sieve?.pass($0) }
            cursor = result["nextCursor"]
            guard let next = cursor, next != .null, cursors.insert(next).inserted else { break }
            if sieve != nil, entries.count >= Self.toolLimit {
                logger.warning("an app's further tools are not listed", metadata: ["endpoint": "\(id)"])
                break
            }
        }
        result["nextCursor"] = nil
        result[member] = .array(method == CachedApp.tools ? Self.sorted(entries) : entries)
        await put(result, method, id)
        if method == CachedApp.tools { self.entries.withLock { $0[id]?.isListDue = false } }
        return result
    }

    /// By name, so that an app whose order is another one after each launch has the same list.
    static func sorted(_ tools: [JSON]) -> [JSON] {
        tools.sorted { ($0["name"]?.string ?? "") < ($1["name"]?.string ?? "") }
    }

    private func put(_ result: JSONObject, _ method: String, _ id: EndpointID) async {
        var kept = result
        // What is kept is the list, and not how long one answer of the app was to be believed.
        for name in ["_meta", "resultType", "ttlMs", "cacheScope"] { kept[name] = nil }
        let isFirst = await shelf.record(of: id).lists[method] == nil
        let isNews = await shelf.update(id) { [kept] in $0.note(kept, of: method) }
        guard isNews, !isFirst else { return }
        switch method {
        case "tools/list": news.ring(id, .tools)
        case "prompts/list": news.ring(id, .prompts)
        default: news.ring(id, .resources)
        }
    }

    /// Whether the caller may know what the app offered before.
    private static func isPassing(_ failure: AppError) -> Bool {
        switch failure {
        case .notPermitted, .notApproved, .mismatch: false
        default: true
        }
    }

    /// As what the caller of an app is told.
    static func failure(_ error: any Error, _ id: EndpointID) -> AppError {
        switch error {
        case let failure as AppError: failure
        case let error as RPCError: .unclear(id, "error \(error.code): \(SanitizedText(error.message, limit: 500))")
        // Cancelled: nobody hears it.
        default: .lostAfterDelivery(id)
        }
    }
}

/// The list of an app's tools.
package struct CachedToolList: Hashable, Sendable {
    /// As the app wrote them, sorted by name.
    package let tools: [JSONObject]
    /// Why it is from an earlier time; nil where the app has just said it.
    package let staleness: AppError?
    /// Other than at the time when somebody last looked at it.
    package let hasChanged: Bool

    package init(tools: [JSONObject], staleness: AppError? = nil, hasChanged: Bool = false) {
        self.tools = tools
        self.staleness = staleness
        self.hasChanged = hasChanged
    }

    package var isStale: Bool { staleness != nil }
}

/// The tools of an app that a wrong name may stand for, as the end of a sentence about it.
struct NearTools: Hashable, Sendable, CustomStringConvertible {
    private let names: [String]

    var isEmpty: Bool { names.isEmpty }

    /// An alias is what the names begin with where the caller sees the tools of several apps.
    init(_ name: String, _ tools: [JSONObject], alias: String? = nil) {
        names = NearNames.of(name, among: tools.compactMap { $0["name"]?.string }).map { name in
            SanitizedText(alias.map { ToolNamespace.name(of: name, alias: $0) } ?? name, limit: 128).text
        }
    }

    var description: String { names.isEmpty ? "" : "; the nearest names are \(names.joined(separator: ", "))" }
}

extension RPCError {
    /// Whether it may be about a tool's name.
    var isAboutNames: Bool { [-32_601, -32_602].contains(code) }
}

extension MCPRequest {
    /// With arguments that were given as a JSON text as the object that they hold.
    var withArgumentsAsObject: MCPRequest {
        guard let given = params["arguments"], given.object == nil, let arguments = given.objectOrText else {
            return self
        }
        var params = params
        params["arguments"] = .object(arguments)
        return with(params)
    }
}
