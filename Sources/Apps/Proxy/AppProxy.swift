package import AccessControl
package import Logging
package import Model
package import Registry
import ServiceLifecycle
package import SystemIO

/// Forwards calls to apps and waits for apps that are restarting.
///
/// `RequestSender` sends requests over the sessions of `UpstreamSessionPool`. `ToolCatalog` has the apps' lists, cached in
/// `AppCache`. Changes in the registry and of approvals wake the calls that wait for an app.
package final class AppProxy: AppCaller, Service {
    let context: ProxyContext
    let pool: UpstreamSessionPool
    let sender: RequestSender
    let catalog: ToolCatalog
    let changeMonitor: ChangeMonitor
    let suspendedCalls: SuspendedCalls

    /// Creates a proxy.
    ///
    /// - Parameters:
    ///   - registry: The endpoints.
    ///   - dialer: Connects to routes.
    ///   - probe: Identifies AppReveal servers.
    ///   - profiles: The profiles of plain HTTP debug servers.
    ///   - authorizer: Decides which routes and tokens a principal may use.
    ///   - leases: Exclusive use of apps.
    ///   - storage: Stores the cache between two runs.
    ///   - sizeLimiter: Reduces large results of tools.
    ///   - resourceLinks: Marks or removes links in results of tools.
    ///   - timeouts: The timeouts.
    ///   - clock: The clock of all timeouts.
    ///   - logger: The operator's log.
    ///   - activity: The history of calls; nil for none.
    package init(
        registry: EndpointRegistry,
        dialer: any Dialer,
        probe: IdentityProbe = .none,
        profiles: [Profile] = [],
        authorizer: any EndpointAuthorizer,
        leases: LeaseService = LeaseService(),
        storage: any AppCacheStorage,
        sizeLimiter: ResultSizeLimiter,
        resourceLinks: ResourceLinkFilter = ResourceLinkFilter(),
        timeouts: UpstreamTimeouts = UpstreamTimeouts(),
        clock: any Clock<Duration> = PollerClock(),
        logger: Logger,
        activity: ActivityLog? = nil
    ) {
        context = ProxyContext(
            registry: registry,
            authorizer: authorizer,
            cache: AppCache(storage),
            timeouts: timeouts,
            clock: clock,
            logger: logger,
            activity: activity
        )
        pool = UpstreamSessionPool(
            context,
            dialer: dialer,
            probe: probe,
            profiles: ProfileIndex(profiles),
            artifacts: sizeLimiter.artifacts
        )
        sender = RequestSender(
            context: context,
            leases: leases,
            pool: pool,
            sizeLimiter: sizeLimiter,
            resourceLinks: resourceLinks
        )
        catalog = ToolCatalog(context: context, sender: sender, pool: pool)
        changeMonitor = ChangeMonitor(context, of: pool, catalog: catalog)
        suspendedCalls = SuspendedCalls(context, over: pool)
    }

    package func run() async throws {
        await cancelWhenGracefulShutdown { [self] in
            await withDiscardingTaskGroup { group in
                group.addTask { await self.followRegistry() }
                group.addTask { await self.followAuthorization() }
                group.addTask { await self.context.tasks.run() }
                group.addTask { await self.changeMonitor.run() }
                group.addTask { await self.context.cache.run() }
            }
        }
        await pool.endProfileSessions()
        await context.cache.save()
    }

    /// Follows the context.registry and records launches and removals of endpoints.
    private func followRegistry() async {
        // The context.registry drops a slow subscriber; the loop then subscribes again and wakes all waiting calls.
        while !Task.isCancelled {
            let (endpoints, changes) = await context.registry.changes()
            for endpoint in endpoints { observe(endpoint, isStart: true) }
            context.stateNotifier.notifyAll(())
            for await change in changes {
                if change.kind == .removed {
                    await remove(change.endpoint.id)
                } else {
                    observe(change.endpoint, isStart: false)
                }
                if change.kind != .changed { context.changeNotifier.notify(change.endpoint.id, .tools) }
                context.stateNotifier.notify(change.endpoint.id, ())
            }
        }
    }

    private func observe(_ endpoint: Endpoint, isStart: Bool) {
        pool.observe(endpoint, isStart: isStart)
        if endpoint.state != .offline { changeMonitor.refreshIfDue(endpoint.id) }
    }

    /// Ends the session with a launch that has ended, and wakes the calls and subscriptions that depend on it.
    package func endLaunch(of id: EndpointID) async {
        await pool.endLaunch(of: id)
        changeMonitor.endLaunch(of: id)
        context.stateNotifier.notify(id, ())
        changeMonitor.refreshIfDue(id)
    }

    private func remove(_ id: EndpointID) async {
        await pool.remove(id)
        changeMonitor.remove(id)
        await context.cache.remove(id)
    }

    /// Follows changes of approvals and tokens and wakes the calls that wait for them.
    private func followAuthorization() async {
        for await id in await context.authorizer.changes() {
            // The next call shows whether a new token is valid.
            pool.recordTokenNeed(of: id, of: nil)
            context.stateNotifier.notify(id, ())
            changeMonitor.refreshIfDue(id)
        }
    }
}

/// The apps' tools and tokens.
extension AppProxy {
    package func tools(of endpoint: Endpoint, for principal: Principal) async throws(AppError) -> AppToolList {
        do { return try await catalog.tools(of: endpoint.id, for: principal) } catch {
            throw AppError(error)
        }
    }

    package func disconnect(_ id: EndpointID) async {
        // First the sessions: a cancelled call would otherwise tell the app, over a session that is still known.
        await pool.disconnect(id)
        await pool.endpointTasks.cancelAll(of: id)
        // A cancelled call may have completed a handshake meanwhile.
        await pool.disconnect(id)
    }

    package func toolCount(of endpoint: Endpoint) async -> Int? {
        await context.cache.record(of: endpoint.id).toolCount
    }

    package func wantsSecret(_ endpoint: Endpoint) -> Bool { pool.requiresToken(endpoint) }

    package func requiresSecret(_ endpoint: Endpoint) -> Bool { pool.requiresSecret(endpoint.kind) ?? false }

    package func describingDeviations(_ endpoints: [Endpoint]) -> [Endpoint] { pool.deviations.described(endpoints) }
}

/// Calls to apps' tools.
extension AppProxy {
    package func call(_ call: ToolCall, of principal: Principal) async throws(AppError) -> JSONObject {
        guard let log = context.activity, !Self.isReadByPage(call, of: principal) else {
            return try await send(try await call.leased(context.clock), of: principal)
        }
        var running = log.begin(
            call.tool,
            call.arguments,
            at: call.endpoint.id,
            for: principal,
            agent: call.agent,
            trace: call.trace.id,
            isWaiting: call.takeLease != nil
        )
        do throws(AppError) {
            let leased = try await call.leased(context.clock)
            if call.takeLease != nil { running = log.start(running) }
            let result = try await send(leased, of: principal)
            log.end(running, .success(result))
            return result
        } catch {
            log.end(running, .failure(Task.isCancelled ? CancellationError() : error))
            throw error
        }
    }

    /// Returns whether the page reads the states of an app, which would fill the activity of the person who looks.
    private static func isReadByPage(_ call: ToolCall, of principal: Principal) -> Bool {
        guard case .dashboard = principal.actor else { return false }
        return call.endpoint.kind == .debug && ["states", "state", "diff", "shot"].contains(call.tool)
    }

    private func send(_ call: ToolCall, of principal: Principal) async throws(AppError) -> JSONObject {
        let params: JSONObject = ["name": .string(call.tool), "arguments": .object(call.arguments)]
        var request = MCPRequest("tools/call", params, wait: call.wait, timeout: call.timeout, notify: call.notify)
        (request.maxPixels, request.imageFormat, request.trace) = (call.maxPixels, call.imageFormat, call.trace)
        let (id, watch) = (call.endpoint.id, ElapsedTimer(context.clock))
        do {
            return try await catalog.call(request, at: id, for: principal)
        } catch let error as RPCError {
            let left = call.timeout.map { $0 - watch.elapsed }
            return .toolFailure(await refusal(of: call.tool, at: id, error, principal, left), code: "refused")
        } catch {
            throw AppError(error)
        }
    }

    /// Describes the app's own error. If the app does not list the tool, the text says so, regardless of the app's
    /// message.
    private func refusal(
        of tool: String,
        at id: EndpointID,
        _ error: RPCError,
        _ principal: Principal,
        _ limit: Duration?
    ) async -> String {
        guard error.isAboutNames,
            let near = await catalog.nearestTools(ifMissing: tool, at: id, for: principal, within: limit)
        else {
            return "\(id) refused the call (error \(error.code)): \(error.message)"
        }
        let said = "error \(error.code): \(SanitizedText(error.message, limit: 500))"
        return """
            \(id) has no tool "\(SanitizedText(tool, limit: 128))" (\(said))\(near); endpoint_tools lists those it has, \
            for a person `patchbay tools \(id)` does
            """
    }
}

/// Calls to apps, as the broker's tools and the HTTP API use them.
package protocol AppCaller: Sendable {
    /// Returns an app's tools, from the cache while the app is offline.
    ///
    /// - Throws: `AppError` if the app has never been listed, or the principal may not call the app.
    func tools(of endpoint: Endpoint, for principal: Principal) async throws(AppError) -> AppToolList

    /// Cancels the calls of an app of this broker, waiting ones too, and ends its sessions. When it returns, no call of
    /// theirs sends another byte.
    func disconnect(_ id: EndpointID) async

    /// Returns the number of cached tools. Does not contact the app.
    func toolCount(of endpoint: Endpoint) async -> Int?

    /// Tests whether a running app accepts a token. The token is not stored.
    ///
    /// - Returns: Nil if the app cannot be asked now.
    func accepts(_ secret: EndpointSecret, at endpoint: Endpoint, for principal: Principal) async -> Bool?

    /// Tests whether an app accepts requests without a token. No token is sent.
    ///
    /// - Returns: False if the app requires a token, or cannot be asked now.
    func requiresNoSecret(_ endpoint: Endpoint, for principal: Principal) async -> Bool

    /// Tests whether an app accepts this principal's requests, with the stored token if there is one.
    ///
    /// - Returns: Nil if the app cannot be asked now.
    func isOpen(_ endpoint: Endpoint, for principal: Principal) async -> Bool?

    /// Returns whether the current launch has rejected a request for lack of a valid token. Does not contact the app.
    func wantsSecret(_ endpoint: Endpoint) -> Bool

    /// Returns whether the profile of the endpoint's kind requires a secret. Does not contact the app.
    func requiresSecret(_ endpoint: Endpoint) -> Bool

    /// Returns the endpoints with what was repaired in the messages of their servers.
    func describingDeviations(_ endpoints: [Endpoint]) -> [Endpoint]

    /// Calls a tool. Waits for an app that is restarting.
    ///
    /// - Returns: A `CallToolResult`; an error of the app itself is a result with `isError`.
    /// - Throws: `AppError` if the app sent no response, or the principal may not call the app.
    func call(_ call: ToolCall, of principal: Principal) async throws(AppError) -> JSONObject
}
