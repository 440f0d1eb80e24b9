package import AccessControl
package import JSON
package import Logging
package import Model
package import Registry
import ServiceLifecycle
package import SystemIO

/// Forwards calls to apps and waits for apps that are restarting.
///
/// `RequestSender` sends requests over the sessions of `UpstreamPool`. `ToolCatalog` has the apps' lists, cached in
/// `AppCache`. Changes in the registry and of approvals wake the calls that wait for an app.
package final class AppProxy: AppCaller, Service {
    let registry: EndpointRegistry
    let timeouts: UpstreamTimeouts
    let sender: RequestSender
    let catalog: ToolCatalog
    let descriptionReader: DescriptionReader
    let changeMonitor: ChangeMonitor
    let elicitationBridge: ElicitationBridge
    private let authorizer: any EndpointAuthorizer
    let pool: UpstreamPool
    private let clientSessions: ClientSessions
    private let tokenTester: TokenTester
    private let cache: AppCache
    private let tasks = BackgroundTasks()
    /// Notifies of changes of an endpoint's routes, state, approval or token.
    private let stateNotifier = EndpointNotifier<Void>()
    /// Notifies of changes that apps announce and of changed lists.
    private let changeNotifier = EndpointNotifier<ServerChange>()
    /// Limits the size of a result for a caller.
    private let limitSize: @Sendable (JSONObject, Int, AgentCaller) async -> JSONObject

    /// Creates a proxy.
    ///
    /// - Parameters:
    ///   - registry: The endpoints.
    ///   - dialer: Connects to routes.
    ///   - probe: Identifies AppReveal servers.
    ///   - authorizer: Decides which routes and tokens a caller may use.
    ///   - storage: Stores the cache between two runs.
    ///   - limitSize: Limits images in a result to a maximum edge in pixels, for a caller.
    ///   - limits: The timeouts.
    ///   - clock: The clock of all timeouts.
    ///   - logger: The operator's log.
    package init(
        registry: EndpointRegistry,
        dialer: any Dialer,
        probe: IdentityProbe = .none,
        authorizer: any EndpointAuthorizer,
        storage: any AppCacheStorage,
        limitSize: @escaping @Sendable (JSONObject, Int, AgentCaller) async -> JSONObject,
        limits: UpstreamTimeouts = UpstreamTimeouts(),
        clock: any Clock<Duration> = PollerClock(),
        logger: Logger
    ) {
        self.registry = registry
        self.authorizer = authorizer
        self.limitSize = limitSize
        timeouts = limits
        cache = AppCache(storage)
        pool = UpstreamPool(
            registry: registry,
            authorizer: authorizer,
            dialer: dialer,
            probe: probe,
            cache: cache,
            timeouts: limits,
            clock: clock,
            tasks: tasks
        )
        clientSessions = ClientSessions(over: pool, tasks: tasks, clock: clock)
        elicitationBridge = ElicitationBridge(
            over: pool,
            tasks: tasks,
            clock: clock,
            clientAnswer: limits.clientAnswer
        )
        tokenTester = TokenTester(pool: pool, clock: clock)
        descriptionReader = DescriptionReader(pool: pool, cache: cache, clock: clock)
        sender = RequestSender(
            registry: registry,
            authorizer: authorizer,
            pool: pool,
            clientSessions: clientSessions,
            elicitationBridge: elicitationBridge,
            cache: cache,
            stateNotifier: stateNotifier,
            total: limits.total,
            clock: clock
        )
        catalog = ToolCatalog(
            sender: sender,
            pool: pool,
            cache: cache,
            changeNotifier: changeNotifier,
            timeouts: limits,
            clock: clock,
            logger: logger
        )
        changeMonitor = ChangeMonitor(
            of: pool,
            tasks: tasks,
            clock: clock,
            stateNotifier: stateNotifier,
            changeNotifier: changeNotifier
        ) { [catalog] id, caller in
            _ = try await catalog.freshList(CachedApp.tools, of: id, for: caller, wait: .zero)
        }
        pool.setHandlers(
            UpstreamPool.Handlers(
                onChange: { [weak changeMonitor] id, change in changeMonitor?.handle(change, from: id) },
                onConnect: { [weak changeMonitor] id in changeMonitor?.refreshIfDue(id) }
            )
        )
    }

    package func run() async throws {
        await cancelWhenGracefulShutdown { [self] in
            await withDiscardingTaskGroup { group in
                group.addTask { await self.followRegistry() }
                group.addTask { await self.followAuthorization() }
                group.addTask { await self.tasks.run() }
                group.addTask { await self.cache.run() }
            }
        }
        await cache.save()
    }

    /// Follows the registry and records launches and removals of endpoints.
    private func followRegistry() async {
        // The registry drops a slow subscriber; the loop then subscribes again and wakes all waiting calls.
        while !Task.isCancelled {
            let (start, changes) = await registry.changes()
            if case .snapshot(let endpoints, _) = start {
                for endpoint in endpoints { observe(endpoint, isStart: true) }
            }
            stateNotifier.notifyAll(())
            for await change in changes {
                if change.kind == .removed {
                    await remove(change.endpoint.id)
                } else {
                    observe(change.endpoint, isStart: false)
                }
                if change.kind != .changed { changeNotifier.notify(change.endpoint.id, .tools) }
                stateNotifier.notify(change.endpoint.id, ())
            }
        }
    }

    private func observe(_ endpoint: Endpoint, isStart: Bool) {
        pool.observe(endpoint, isStart: isStart)
        if endpoint.state != .offline { changeMonitor.refreshIfDue(endpoint.id) }
    }

    private func remove(_ id: EndpointID) async {
        await pool.remove(id)
        changeMonitor.remove(id)
        clientSessions.removeAll(of: id)
        await cache.remove(id)
    }

    /// Follows changes of approvals and tokens and wakes the calls that wait for them.
    private func followAuthorization() async {
        for await id in await authorizer.changes() {
            // The next call shows whether a new token is valid.
            pool.recordTokenNeed(of: id, of: nil)
            stateNotifier.notify(id, ())
            changeMonitor.refreshIfDue(id)
        }
    }
}

/// The apps' tools and tokens.
extension AppProxy {
    package func tools(of endpoint: Endpoint, for caller: AgentCaller) async throws(AppError) -> CachedToolList {
        do { return try await catalog.tools(of: endpoint.id, for: caller) } catch {
            throw AppError(error, at: endpoint.id)
        }
    }

    package func toolCount(of endpoint: Endpoint) async -> Int? { await cache.record(of: endpoint.id).toolCount }

    package func accepts(_ secret: EndpointSecret, at endpoint: Endpoint, for caller: AgentCaller) async -> Bool? {
        await tokenTester.accepts(secret, at: endpoint, for: caller)
    }

    package func isOpen(_ endpoint: Endpoint, for caller: AgentCaller) async -> Bool? {
        await tokenTester.isOpen(endpoint, for: caller)
    }

    package func wantsSecret(_ endpoint: Endpoint) -> Bool { pool.requiresToken(endpoint) }
}

/// Calls to apps' tools.
extension AppProxy {
    package func call(_ call: ToolCall, of caller: AgentCaller) async throws(AppError) -> JSONObject {
        let params: JSONObject = ["name": .string(call.tool), "arguments": .object(call.arguments)]
        let request = MCPRequest("tools/call", params, timeout: call.timeout, notify: call.notify)
        let id = call.endpoint.id
        do {
            let result = try await self.call(request, at: id, for: caller, wait: call.wait, maxPixels: call.maxPixels)
            return await catalog.withToolSuggestions(result, call.tool, at: id, for: caller)
        } catch let error as RPCError {
            return Self.result(saying: await refusal(of: call.tool, at: id, error, caller), code: "refused")
        } catch {
            throw AppError(error, at: id)
        }
    }

    /// Calls a tool and limits the size of its result.
    ///
    /// - Throws: `AppError`, the app's own `RPCError`, `CancellationError`.
    func call(
        _ request: MCPRequest,
        at id: EndpointID,
        for caller: AgentCaller,
        wait: Duration,
        maxPixels: Int
    ) async throws -> JSONObject {
        var request = request
        // A client that wants the original (`maxPixels` 0) gets the app's default format.
        if maxPixels != 0, request.isOpenToJPEG, await offersJPEG(request, id) { request = request.requestingJPEG }
        let reply: AppReply
        do {
            reply = try await sender.send(request, at: id, for: caller, wait: wait)
        } catch AppError.invalidResponse(let id, let what) {
            // The app has answered, so it has received the call.
            throw AppError.invalidResponse(id, "\(what) (delivered, result unknown)")
        }
        defer { reply.permit?.release() }
        return await limitSize(try reply.outcome.get(), maxPixels, caller)
    }

    /// Describes the app's own error. If the app does not list the tool, the text says so, regardless of the app's
    /// message.
    private func refusal(
        of tool: String,
        at id: EndpointID,
        _ error: RPCError,
        _ caller: AgentCaller
    ) async -> String {
        guard error.isAboutNames, let near = await catalog.nearestTools(ifMissing: tool, at: id, for: caller) else {
            return "\(id) refused the call (error \(error.code)): \(error.message)"
        }
        let said = "error \(error.code): \(SanitizedText(error.message, limit: 500))"
        return """
            \(id) has no tool "\(SanitizedText(tool, limit: 128))" (\(said))\(near); endpoint_tools lists those it has, \
            for a person `patchbay tools \(id)` does
            """
    }

    private func offersJPEG(_ request: MCPRequest, _ id: EndpointID) async -> Bool {
        guard await sender.annotations(of: request, id).offersJPEG else { return false }
        return (try? await pool.endpoint(id).kind) == .appreveal
    }

    /// Returns a tool result with `isError`.
    static func result(saying text: String, code: String) -> JSONObject {
        [
            "content": [["type": "text", "text": .string(text)]], "isError": true,
            "_meta": ["patchbay/failure": .string(code)],
        ]
    }
}

/// Calls to apps, as the broker's tools and the HTTP API use them.
package protocol AppCaller: Sendable {
    /// Returns an app's tools, from the cache while the app is offline.
    ///
    /// - Throws: `AppError` if the app has never been listed, or the caller may not call the app.
    func tools(of endpoint: Endpoint, for caller: AgentCaller) async throws(AppError) -> CachedToolList

    /// Returns the number of cached tools. Does not contact the app.
    func toolCount(of endpoint: Endpoint) async -> Int?

    /// Tests whether a running app accepts a token. The token is not stored.
    ///
    /// - Returns: Nil if the app cannot be asked now.
    func accepts(_ secret: EndpointSecret, at endpoint: Endpoint, for caller: AgentCaller) async -> Bool?

    /// Tests whether an app accepts this caller's requests, with the stored token if there is one.
    ///
    /// - Returns: Nil if the app cannot be asked now.
    func isOpen(_ endpoint: Endpoint, for caller: AgentCaller) async -> Bool?

    /// Returns whether the current launch has rejected a request for lack of a valid token. Does not contact the app.
    func wantsSecret(_ endpoint: Endpoint) -> Bool

    /// Calls a tool. Waits for an app that is restarting.
    ///
    /// - Returns: A `CallToolResult`; an error of the app itself is a result with `isError`.
    /// - Throws: `AppError` if the app sent no response, or the caller may not call the app.
    func call(_ call: ToolCall, of caller: AgentCaller) async throws(AppError) -> JSONObject
}
