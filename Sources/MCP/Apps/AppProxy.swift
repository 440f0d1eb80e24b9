package import AccessControl
package import JSON
package import Logging
package import Model
package import Registry
import ServiceLifecycle
import Synchronization
package import SystemIO

/// Where calls to apps come in, wait for an app that is away, and go out.
///
/// It has one line for each app (`UpstreamSession`), keeps on a shelf what the apps said when they were there (`AppCache`), and
/// follows registry and pairing, so that whoever waits for an app is woken when something changes about it.
package final class AppProxy: AppCaller, Service {
    /// What an app's line is called by, and when the app came.
    struct Entry: Sendable {
        let line: UpstreamSession
        /// `Endpoint.approvedApp`.
        var approvedApp: SanitizedText?
        var launch: UpstreamSession.Launch?
        /// When it was started, or came back, by `watch`; nil while nobody has seen it.
        var arrival: Duration?
        /// The launch that last answered that it wants a token.
        var wanting: UpstreamSession.Launch?
        /// When it was last asked what it is, for nothing but that.
        var lastMeeting: Duration?
        /// Its changes are being followed.
        var isFollowed = false
        /// Its tools have not been listed since it was launched.
        var isListDue = false
        var refreshes: [ServerChange: Refresh] = [:]
    }

    let registry: EndpointRegistry
    let trust: any EndpointAuthorizer
    let limits: UpstreamTimeouts
    let clock: any Clock<Duration>
    let logger: Logger
    let shelf: AppCache
    let watch: ElapsedTimer
    /// Rings when something changes about an endpoint: its place, its state, its approval, its secret.
    let bells = EndpointNotifier<Void>()
    /// What apps and their lists say has changed.
    let news = EndpointNotifier<ServerChange>()
    /// Fits a result to what the caller can take.
    let trim: @Sendable (JSONObject, Int, AgentCaller) async -> JSONObject
    let entries = Mutex<[EndpointID: Entry]>([:])
    /// Lines that are one caller's alone.
    let owns = Mutex(ClientSessionPool())
    /// Requests that wait in an app for what their callers answer.
    let interviews = Mutex(SuspendedRequestStore())
    let errands: AsyncStream<BackgroundTask>
    private let dialer: any Dialer
    private let probe: IdentityProbe
    private let out: AsyncStream<BackgroundTask>.Continuation

    /// How many errands wait for their turn; what comes on top of them is not worth a slow broker.
    private static let errandLimit = 1_024

    /// - Parameters:
    ///   - registry: Where apps are.
    ///   - dialer: How routes are reached.
    ///   - probe: Asks AppReveal servers who they are.
    ///   - trust: Who may reach what, with which secret.
    ///   - memory: Keeps what apps said between two runs.
    ///   - trim: Fits a result to the longest edge that its images may have, for a caller.
    ///   - limits: How long apps are waited for.
    ///   - clock: What every time limit is measured with.
    ///   - logger: Where the operator reads.
    package init(
        registry: EndpointRegistry,
        dialer: any Dialer,
        probe: IdentityProbe = .none,
        trust: any EndpointAuthorizer,
        memory: any AppCacheStorage,
        trim: @escaping @Sendable (JSONObject, Int, AgentCaller) async -> JSONObject,
        limits: UpstreamTimeouts = UpstreamTimeouts(),
        clock: any Clock<Duration> = PollerClock(),
        logger: Logger
    ) {
        self.registry = registry
        self.dialer = dialer
        self.probe = probe
        self.trust = trust
        self.trim = trim
        self.limits = limits
        self.clock = clock
        self.logger = logger
        shelf = AppCache(memory)
        watch = ElapsedTimer(clock)
        (errands, out) = AsyncStream.makeStream(
            of: BackgroundTask.self,
            bufferingPolicy: .bufferingOldest(Self.errandLimit)
        )
    }

    package func run() async throws {
        await cancelWhenGracefulShutdown { [self] in
            await withDiscardingTaskGroup { group in
                group.addTask { await self.followRegistry() }
                group.addTask { await self.followTrust() }
                group.addTask { await self.runErrands() }
                group.addTask { await self.shelf.run() }
            }
        }
        await shelf.save()
    }

    /// The line to an endpoint, made when it is first needed.
    func line(to endpoint: Endpoint) -> UpstreamSession {
        entries.withLock { entries in
            if let entry = entries[endpoint.id] { return entry.line }
            let entry = Entry(line: makeLine(to: endpoint.id), approvedApp: endpoint.approvedApp)
            entries[endpoint.id] = entry
            return entry.line
        }
    }

    func makeLine(to id: EndpointID, own: ClientSessionParameters? = nil) -> UpstreamSession {
        UpstreamSession(
            to: id,
            dialer: dialer,
            limits: limits.upstream,
            listening: .listening(for: limits.listening),
            clock: clock,
            send: { [out] in out.yield($0) },
            tell: { [weak self] change in self?.heed(change, from: id) },
            own: own,
            probe: probe,
            identified: { [registry] report in
                switch report {
                case .server(let name, let version): await registry.setServer(name, version: version, of: id)
                case .mismatch(let route, let found): await registry.setMismatch(found, on: route, of: id)
                }
            },
            met: { [weak self] met in
                // What everybody is told of an app is what everybody meets.
                guard let self, own == nil else { return }
                await shelf.update(id) { $0.note(met) }
                noteMeeting(with: id)
            }
        )
    }

    /// - Returns: False where too many are before it, so that it is not done.
    @discardableResult
    func send(_ errand: BackgroundTask) -> Bool {
        if case .enqueued = out.yield(errand) { true } else { false }
    }
}

/// Calling apps' tools.
extension AppProxy {
    package func call(_ call: ToolCall, of caller: AgentCaller) async throws(AppError) -> JSONObject {
        let params: JSONObject = ["name": .string(call.tool), "arguments": .object(call.arguments)]
        let request = MCPRequest("tools/call", params, patience: call.patience, notify: call.notify)
        let id = call.endpoint.id
        do {
            let result = try await self.call(request, at: id, for: caller, wait: call.wait, maxPixels: call.maxPixels)
            return await hinted(result, call.tool, at: id, for: caller)
        } catch let error as RPCError {
            return Self.result(saying: await refusal(of: call.tool, at: id, error, caller), code: "refused")
        } catch {
            throw Self.failure(error, id)
        }
    }

    /// - Throws: `AppError`, an `RPCError` of the app's own, `CancellationError`.
    func call(
        _ request: MCPRequest,
        at id: EndpointID,
        for caller: AgentCaller,
        wait: Duration,
        maxPixels: Int
    ) async throws -> JSONObject {
        var request = request
        // Whoever wants the original gets what the app gives by itself.
        if maxPixels != 0, request.isOpenToJPEG, await offersJPEG(request, id) { request = request.askingForJPEG }
        let reply: AppReply
        do {
            reply = try await reach(request, at: id, for: caller, wait: wait)
        } catch AppError.unclear(let id, let what) {
            // It has answered something, so it has got the call.
            throw AppError.unclear(id, "\(what) (delivered, result unknown)")
        }
        defer { reply.permit?.giveBack() }
        return await trim(try reply.outcome.get(), maxPixels, caller)
    }

    /// What an app's own error is about; one about a tool that the app does not list is about that, whatever its words.
    private func refusal(
        of tool: String,
        at id: EndpointID,
        _ error: RPCError,
        _ caller: AgentCaller
    ) async -> String {
        guard error.isAboutNames, let near = await absence(of: tool, at: id, for: caller) else {
            return "\(id) refused the call (error \(error.code)): \(error.message)"
        }
        let said = "error \(error.code): \(SanitizedText(error.message, limit: 500))"
        return """
            \(id) has no tool "\(SanitizedText(tool, limit: 128))" (\(said))\(near); endpoint_tools lists those it has, \
            for a person `patchbay tools \(id)` does
            """
    }

    /// The result, and where it says that a tool failed which the app does not list, the names that may be meant.
    func hinted(
        _ result: JSONObject,
        _ tool: String,
        at id: EndpointID,
        for caller: AgentCaller,
        alias: String? = nil
    ) async -> JSONObject {
        guard result["isError"] == true, let content = result["content"]?.array,
            let near = await absence(of: tool, at: id, for: caller, alias: alias), !near.isEmpty
        else { return result }
        let hint = "\(id) has no tool \"\(SanitizedText(tool, limit: 128))\"\(near)"
        var result = result
        result["content"] = .array(content + [["type": "text", "text": .string(hint)]])
        return result
    }

    /// The nearest names of a tool that the app does not list; nil where it lists it, or cannot be asked.
    func absence(
        of tool: String,
        at id: EndpointID,
        for caller: AgentCaller,
        alias: String? = nil
    ) async -> NearTools? {
        func has(_ list: JSONObject) -> Bool {
            list["tools"]?.array?.contains { $0["name"]?.string == tool } ?? false
        }
        if let shelved = await shelvedList(CachedApp.tools, of: id), has(shelved) { return nil }
        // It may have got the tool since.
        guard let list = try? await list(CachedApp.tools, of: id, for: caller, within: limits.list).result, !has(list)
        else { return nil }
        return NearTools(tool, list["tools"]?.array?.compactMap(\.object) ?? [], alias: alias)
    }

    private func offersJPEG(_ request: MCPRequest, _ id: EndpointID) async -> Bool {
        guard await traits(of: request, id).offersJPEG else { return false }
        return (try? await endpoint(id).kind) == .appreveal
    }

    /// A result of a tool that could not be called.
    static func result(saying text: String, code: String) -> JSONObject {
        [
            "content": [["type": "text", "text": .string(text)]], "isError": true,
            "_meta": ["patchbay/failure": .string(code)],
        ]
    }
}

/// The apps' own servers, as the broker's tools, its URLs and its HTTP API reach them.
package protocol AppCaller: Sendable {
    /// What an app offers, from the cache while the app is away.
    ///
    /// - Throws: `AppError` when it was never heard, or must not be asked.
    func tools(of endpoint: Endpoint, for caller: AgentCaller) async throws(AppError) -> CachedToolList

    /// How many tools an app has, as far as that is known; it is not asked.
    func toolCount(of endpoint: Endpoint) async -> Int?

    /// Whether an app that is there takes a secret as its own; it is kept nowhere for that.
    ///
    /// - Returns: Nil where the app cannot be asked now.
    func takes(_ secret: EndpointSecret, at endpoint: Endpoint, for caller: AgentCaller) async -> Bool?

    /// Whether an app lets this caller in now, with the secret that is held for it or without one.
    ///
    /// - Returns: Nil where the app cannot be asked now.
    func isOpen(_ endpoint: Endpoint, for caller: AgentCaller) async -> Bool?

    /// Whether this launch of an app has said that it wants another token than it was shown; it is not asked.
    func wantsSecret(_ endpoint: Endpoint) -> Bool

    /// Calls one tool of an app, and waits for an app that is on its way back.
    ///
    /// - Returns: A `CallToolResult`; what the app itself refuses is one with `isError`.
    /// - Throws: `AppError` when there is no answer of the app's, or it must not be asked.
    func call(_ call: ToolCall, of caller: AgentCaller) async throws(AppError) -> JSONObject
}
