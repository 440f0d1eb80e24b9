import AccessControl
import Logging
package import Model
import SystemIO

/// The tools and other lists of apps, live or from the cache.
struct ToolCatalog: Sendable {
    /// A list result, and the reason if the list is from the cache.
    struct List: Sendable {
        var result: JSONObject
        let staleness: AppError?
    }

    /// The page limit of a list. An app with more pages is assumed to loop, as is an app that repeats a cursor.
    private static let pageLimit = 100
    /// The limit of all pages of a list in bytes. The page that reaches it is the last.
    private static let sizeLimit = 32 * 1_048_576
    /// No further page is requested after this many tools, because no model can use more.
    private static let toolLimit = 1_000

    let context: ProxyContext
    let sender: RequestSender
    let pool: UpstreamSessionPool

    /// Returns an app's tools, from the cache while the app is offline. Marks the tools as seen.
    ///
    /// - Throws: `AppError`, the app's own `RPCError`, `CancellationError`.
    func tools(of id: EndpointID, for principal: Principal) async throws -> AppToolList {
        let list = try await list(CachedApp.tools, of: id, for: principal)
        let hasChanged = await markToolsSeen(of: id)
        return AppToolList(
            tools: list.result["tools"]?.array?.compactMap(\.object) ?? [],
            staleness: list.staleness,
            hasChanged: hasChanged
        )
    }

    /// Returns the headers that a tool's arguments must be sent in, according to the cached list. Empty for a principal
    /// without access.
    func parameterHeaders(of tool: String, at id: EndpointID, for principal: Principal) async -> ParameterHeaders {
        guard let headers = await context.cache.record(of: id).annotations(of: tool)?.parameters, headers != .none,
            let endpoint = try? await pool.endpoint(id), principal.may(.endpointCall, on: endpoint)
        else { return .none }
        return headers
    }

    /// Marks an app's current tools as seen.
    ///
    /// - Returns: Whether the tools changed since the last call.
    func markToolsSeen(of id: EndpointID) async -> Bool {
        let hasChanged = await context.cache.record(of: id).hasChanged
        await context.cache.update(id) { $0.markSeen() }
        return hasChanged
    }

    /// Returns a live list, or the cached list if the app does not answer within `timeouts.list`. Without a cached list,
    /// waits for the app. A list of tools has only those that the principal may call.
    ///
    /// - Throws: `AppError`, the app's own `RPCError`, `CancellationError`.
    func list(
        _ method: String,
        of id: EndpointID,
        for principal: Principal
    ) async throws -> List {
        var list = try await unfilteredList(method, of: id, for: principal)
        guard method == CachedApp.tools, principal.tools != .all else { return list }
        let tools = list.result["tools"]?.array ?? []
        list.result["tools"] = .array(Self.allowed(tools, on: try await pool.endpoint(id).kind, for: principal))
        return list
    }

    private func unfilteredList(
        _ method: String,
        of id: EndpointID,
        for principal: Principal
    ) async throws -> List {
        guard let cached = await cachedList(method, of: id) else {
            let fresh = try await freshList(method, of: id, for: principal)
            return List(result: fresh, staleness: nil)
        }
        do {
            let fresh = try await withTimeout(context.timeouts.list, clock: context.clock) {
                try await freshList(method, of: id, for: principal, wait: .zero)
            }
            if let fresh { return List(result: fresh, staleness: nil) }
            return List(result: cached, staleness: .timedOut(seconds: Int(context.timeouts.list / .seconds(1))))
        } catch let failure as AppError where Self.allowsCachedList(failure) {
            return List(result: cached, staleness: failure)
        }
    }

    /// Returns the cached list; nil if the app has never been listed.
    func cachedList(_ method: String, of id: EndpointID) async -> JSONObject? {
        guard var list = await context.cache.record(of: id).list(of: method) else { return nil }
        // An earlier version of Patchbay may have cached the list with fewer checks.
        let member = MCPRequest.listMembers[method] ?? ""
        list[member] = .array(ListSanitizer.sanitize(list[member]?.array ?? [], of: method))
        return list
    }

    /// Requests all pages of a list, merges them, sorts tools by name, and caches the result.
    func freshList(
        _ method: String,
        of id: EndpointID,
        for principal: Principal,
        wait: Duration? = nil
    ) async throws -> JSONObject {
        let member = MCPRequest.listMembers[method] ?? ""
        var entries: [JSON] = []
        var sanitizer = ListSanitizer(method)
        var cursor: JSON?
        var cursors: Set<JSON> = []
        var result = JSONObject()
        var size = 0
        for _ in 0..<Self.pageLimit {
            var params = JSONObject()
            params["cursor"] = cursor
            let response = try await sender.send(MCPRequest(method, params, wait: wait), at: id, for: principal)
            size += response.size
            result = try response.result()
            // PHP writes a list with a gap as an object.
            let page = result[member]?.array ?? result[member]?.object?.members.map(\.value) ?? []
            entries += page.compactMap { sanitizer.sanitize($0) }
            cursor = result["nextCursor"].flatMap { $0 == "" || $0.string == nil && $0.number == nil ? nil : $0 }
            guard let next = cursor, cursors.insert(next).inserted else { break }
            if method == CachedApp.tools && entries.count >= Self.toolLimit || size > Self.sizeLimit {
                context.logger.warning(
                    "the app's list is too long; further pages are ignored",
                    metadata: ["endpoint": "\(id)"]
                )
                break
            }
        }
        if sanitizer.hasRepaired { pool.deviations.record(.damagedList, of: id) }
        result["nextCursor"] = nil
        result[member] = .array(method == CachedApp.tools ? Self.sorted(entries) : entries)
        await store(result, method: method, of: id)
        if method == CachedApp.tools { pool.setListDue(false, of: id) }
        return result
    }

    /// Sorts by name, so that an app with an unstable order has the same list after each launch.
    static func sorted(_ tools: [JSON]) -> [JSON] {
        tools.sorted { ($0["name"]?.string ?? "") < ($1["name"]?.string ?? "") }
    }

    private func store(_ result: JSONObject, method: String, of id: EndpointID) async {
        var stored = result
        // Only the list is cached, without the metadata of one response.
        for name in ["_meta", "resultType", "ttlMs", "cacheScope"] { stored[name] = nil }
        let isFirst = await context.cache.record(of: id).lists[method] == nil
        let hasChanged = await context.cache.update(id) { [stored] in $0.record(stored, of: method) }
        guard hasChanged, !isFirst else { return }
        context.changeNotifier.notify(id, Self.change(ofList: method))
    }

    /// Returns the lists of an app that have changed since the broker started.
    func changedLists(of id: EndpointID) async -> Set<ServerChange> {
        Set(await context.cache.record(of: id).changedMethods.map(Self.change))
    }

    private static func change(ofList method: String) -> ServerChange {
        switch method {
        case "tools/list": .tools
        case "prompts/list": .prompts
        default: .resources
        }
    }

    /// Returns whether the principal may see the cached list after this error.
    static func allowsCachedList(_ failure: AppError) -> Bool {
        switch failure {
        case .forbidden, .notApproved, .denied, .mismatch: false
        default: true
        }
    }
}

/// Tools by name.
extension ToolCatalog {
    /// Adds the nearest tool names to a failed result if the app does not list the tool.
    func withToolSuggestions(
        _ result: JSONObject,
        _ tool: String,
        at id: EndpointID,
        for principal: Principal,
        alias: String? = nil,
        within limit: Duration? = nil
    ) async -> JSONObject {
        // A refusal by Patchbay names the nearest tool itself.
        guard result["isError"] == true, result["_meta"]?["patchbay/failure"] == nil,
            let content = result["content"]?.array,
            let near = await nearestTools(ifMissing: tool, at: id, for: principal, alias: alias, within: limit),
            !near.isEmpty
        else { return result }
        let hint = "\(id) has no tool \"\(SanitizedText(tool, limit: 128))\"\(near)"
        var result = result
        result["content"] = .array(content + [["type": "text", "text": .string(hint)]])
        return result
    }

    /// Returns the nearest names of a missing tool; nil if the app lists the tool or cannot be asked in time.
    func nearestTools(
        ifMissing tool: String,
        at id: EndpointID,
        for principal: Principal,
        alias: String? = nil,
        within limit: Duration? = nil
    ) async -> ToolNameSuggestions? {
        guard let limit else { return await nearestTools(tool, at: id, for: principal, alias) }
        return try? await withTimeout(limit, clock: context.clock) {
            await nearestTools(tool, at: id, for: principal, alias)
        }
            ?? nil
    }

    private func nearestTools(
        _ tool: String,
        at id: EndpointID,
        for principal: Principal,
        _ alias: String?
    ) async -> ToolNameSuggestions? {
        func has(_ list: JSONObject) -> Bool {
            list["tools"]?.array?.contains { $0["name"]?.string == tool } ?? false
        }
        if let cached = await cachedList(CachedApp.tools, of: id), has(cached) { return nil }
        // The app may have added the tool since the cached list.
        guard let list = try? await list(CachedApp.tools, of: id, for: principal).result, !has(list) else { return nil }
        return ToolNameSuggestions(tool, list["tools"]?.array?.compactMap(\.object) ?? [], alias: alias)
    }
}

/// An app's tools.
package struct AppToolList: Hashable, Sendable {
    /// The tools as the app sent them, sorted by name.
    package let tools: [JSONObject]
    /// The reason why the list is from the cache; nil for a live list.
    package let staleness: AppError?
    /// Indicates whether the tools changed since a client last fetched them.
    package let hasChanged: Bool

    package init(tools: [JSONObject], staleness: AppError? = nil, hasChanged: Bool = false) {
        self.tools = tools
        self.staleness = staleness
        self.hasChanged = hasChanged
    }

    package var isStale: Bool { staleness != nil }
}

extension RPCError {
    /// Indicates whether the error may be about a tool's name.
    var isAboutNames: Bool { [-32_601, -32_602].contains(code) }
}

extension MCPRequest {
    /// The request with `arguments` as an object, if the client sent them as a JSON text, as null or as PHP's empty list.
    var withArgumentsAsObject: MCPRequest {
        guard let given = params["arguments"], given.object == nil else { return self }
        if given.isNull { return with(arguments: [:], conversions: ["null left out"]) }
        if given == [] { return with(arguments: [:], conversions: ["empty list to object"]) }
        guard let arguments = given.objectOrText else { return self }
        return with(arguments: arguments, conversions: ["text to object"])
    }
}
