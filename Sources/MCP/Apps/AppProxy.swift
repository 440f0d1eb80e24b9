package import AccessControl
package import JSON
package import Logging
package import Model
package import Registry
import ServiceLifecycle
import Synchronization
package import SystemIO

/// Forwards calls to apps and waits for apps that are restarting.
///
/// `AppProxy` has one `UpstreamSession` for each app and caches the apps' lists in `AppCache`. Changes in the registry
/// and of approvals wake the calls that wait for an app.
package final class AppProxy: AppCaller, Service {
    /// The session with an app and the state of the app's current launch.
    struct Entry: Sendable {
        let session: UpstreamSession
        /// `Endpoint.approvedApp`.
        var approvedApp: SanitizedText?
        var launch: UpstreamSession.Launch?
        /// The time of the last launch or return, by `watch`; nil if the app was present at start.
        var arrivedAt: Duration?
        /// The launch that last answered 401.
        var launchRequiringToken: UpstreamSession.Launch?
        /// The time of the last connection that was made only for the description.
        var lastDescriptionAttempt: Duration?
        /// Indicates whether a task follows the app's changes.
        var isFollowed = false
        /// Indicates whether the tools have not been listed since the launch.
        var isListDue = false
        var refreshes: [ServerChange: Refresh] = [:]
    }

    let registry: EndpointRegistry
    let authorizer: any EndpointAuthorizer
    let limits: UpstreamTimeouts
    let clock: any Clock<Duration>
    let logger: Logger
    let cache: AppCache
    let watch: ElapsedTimer
    /// Notifies of changes of an endpoint's routes, state, approval or token.
    let stateNotifier = EndpointNotifier<Void>()
    /// Notifies of changes that apps announce and of changed lists.
    let changeNotifier = EndpointNotifier<ServerChange>()
    /// Limits the size of a result for a caller.
    let limitSize: @Sendable (JSONObject, Int, AgentCaller) async -> JSONObject
    let entries = Mutex<[EndpointID: Entry]>([:])
    /// Sessions that each belong to one MCP client.
    let clientSessions = Mutex(ClientSessionPool())
    /// Requests that wait for input from their clients.
    let suspendedRequests = Mutex(SuspendedRequestStore())
    let backgroundTasks: AsyncStream<BackgroundTask>
    private let dialer: any Dialer
    private let probe: IdentityProbe
    private let taskQueue: AsyncStream<BackgroundTask>.Continuation

    /// The limit of queued background tasks. Further tasks are dropped to protect Patchbay from overload.
    private static let backgroundTaskLimit = 1_024

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
        self.dialer = dialer
        self.probe = probe
        self.authorizer = authorizer
        self.limitSize = limitSize
        self.limits = limits
        self.clock = clock
        self.logger = logger
        cache = AppCache(storage)
        watch = ElapsedTimer(clock)
        (backgroundTasks, taskQueue) = AsyncStream.makeStream(
            of: BackgroundTask.self,
            bufferingPolicy: .bufferingOldest(Self.backgroundTaskLimit)
        )
    }

    package func run() async throws {
        await cancelWhenGracefulShutdown { [self] in
            await withDiscardingTaskGroup { group in
                group.addTask { await self.followRegistry() }
                group.addTask { await self.followAuthorization() }
                group.addTask { await self.runBackgroundTasks() }
                group.addTask { await self.cache.run() }
            }
        }
        await cache.save()
    }

    /// Returns the shared session with an endpoint, created on first use.
    func session(to endpoint: Endpoint) -> UpstreamSession {
        entries.withLock { entries in
            if let entry = entries[endpoint.id] { return entry.session }
            let entry = Entry(session: makeSession(to: endpoint.id), approvedApp: endpoint.approvedApp)
            entries[endpoint.id] = entry
            return entry.session
        }
    }

    /// Makes a session with an app: a client session with `clientParameters`, otherwise a shared one.
    func makeSession(to id: EndpointID, clientParameters: ClientSessionParameters? = nil) -> UpstreamSession {
        UpstreamSession(
            to: id,
            dialer: dialer,
            limits: limits.upstream,
            streamLimits: .changeStream(idle: limits.changeStreamIdle),
            clock: clock,
            schedule: { [taskQueue] in taskQueue.yield($0) },
            onChange: { [weak self] change in self?.handle(change, from: id) },
            clientParameters: clientParameters,
            probe: probe,
            onIdentify: { [registry] report in
                switch report {
                case .server(let name, let version): await registry.setServer(name, version: version, of: id)
                case .mismatch(let route, let found): await registry.setMismatch(found, on: route, of: id)
                }
            },
            onConnect: { [weak self] server in
                // The public description of an app comes from the shared session only.
                guard let self, clientParameters == nil else { return }
                await cache.update(id) { $0.record(server) }
                didConnect(to: id)
            }
        )
    }

    /// Queues a background task.
    ///
    /// - Returns: False if the queue is full and the task was dropped.
    @discardableResult
    func schedule(_ task: BackgroundTask) -> Bool {
        if case .enqueued = taskQueue.yield(task) { true } else { false }
    }
}

/// Calls to apps' tools.
extension AppProxy {
    package func call(_ call: ToolCall, of caller: AgentCaller) async throws(AppError) -> JSONObject {
        let params: JSONObject = ["name": .string(call.tool), "arguments": .object(call.arguments)]
        let request = MCPRequest("tools/call", params, timeout: call.timeout, notify: call.notify)
        let id = call.endpoint.id
        do {
            let result = try await self.call(request, at: id, for: caller, wait: call.wait, maxPixels: call.maxPixels)
            return await withToolSuggestions(result, call.tool, at: id, for: caller)
        } catch let error as RPCError {
            return Self.result(saying: await refusal(of: call.tool, at: id, error, caller), code: "refused")
        } catch {
            throw Self.failure(error, id)
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
            reply = try await send(request, at: id, for: caller, wait: wait)
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
        guard error.isAboutNames, let near = await nearestTools(ifMissing: tool, at: id, for: caller) else {
            return "\(id) refused the call (error \(error.code)): \(error.message)"
        }
        let said = "error \(error.code): \(SanitizedText(error.message, limit: 500))"
        return """
            \(id) has no tool "\(SanitizedText(tool, limit: 128))" (\(said))\(near); endpoint_tools lists those it has, \
            for a person `patchbay tools \(id)` does
            """
    }

    /// Adds the nearest tool names to a failed result if the app does not list the tool.
    func withToolSuggestions(
        _ result: JSONObject,
        _ tool: String,
        at id: EndpointID,
        for caller: AgentCaller,
        alias: String? = nil
    ) async -> JSONObject {
        guard result["isError"] == true, let content = result["content"]?.array,
            let near = await nearestTools(ifMissing: tool, at: id, for: caller, alias: alias), !near.isEmpty
        else { return result }
        let hint = "\(id) has no tool \"\(SanitizedText(tool, limit: 128))\"\(near)"
        var result = result
        result["content"] = .array(content + [["type": "text", "text": .string(hint)]])
        return result
    }

    /// Returns the nearest names of a missing tool; nil if the app lists the tool or cannot be asked.
    func nearestTools(
        ifMissing tool: String,
        at id: EndpointID,
        for caller: AgentCaller,
        alias: String? = nil
    ) async -> NearTools? {
        func has(_ list: JSONObject) -> Bool {
            list["tools"]?.array?.contains { $0["name"]?.string == tool } ?? false
        }
        if let cached = await cachedList(CachedApp.tools, of: id), has(cached) { return nil }
        // The app may have added the tool since the cached list.
        guard let list = try? await list(CachedApp.tools, of: id, for: caller, within: limits.list).result, !has(list)
        else { return nil }
        return NearTools(tool, list["tools"]?.array?.compactMap(\.object) ?? [], alias: alias)
    }

    private func offersJPEG(_ request: MCPRequest, _ id: EndpointID) async -> Bool {
        guard await annotations(of: request, id).offersJPEG else { return false }
        return (try? await endpoint(id).kind) == .appreveal
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
