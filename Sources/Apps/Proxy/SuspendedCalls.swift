import AccessControl
import Model
import Synchronization
import SystemIO

/// Runs requests of 2026-07-28 clients, which are asked for input by results, at apps that ask on a stream.
final class SuspendedCalls: Sendable {
    /// Methods during which 2026-07-28 lets a server request input.
    private static let methods: Set = ["tools/call", "prompts/get", "resources/read"]

    private let tasks: BackgroundTasks
    private let pool: UpstreamSessionPool
    private let watch: ElapsedTimer
    /// The requests that wait for input from their clients.
    private let table = Mutex(SuspendedCallTable())

    init(_ context: ProxyContext, over pool: UpstreamSessionPool) {
        (tasks, self.pool, watch) = (context.tasks, pool, ElapsedTimer(context.clock))
    }

    /// Returns whether an app may ask the client for input during a request, by results.
    static func mayAsk(during request: MCPRequest) -> Bool {
        request.clientRequester == nil && methods.contains(request.method)
            && !ClientCapabilities(request.capabilities).isEmpty
    }

    /// Runs a request of a 2026-07-28 client, during which a session-mode app may send requests.
    ///
    /// - Throws: Errors of `body`, `AppError.busy`, `RPCError`.
    func run(
        _ request: MCPRequest,
        at id: EndpointID,
        of principal: Principal,
        _ body: @escaping @Sendable (MCPRequest) async throws -> JSONObject
    ) async throws -> JSONObject {
        let (state, answers) = (request.params["requestState"]?.string, request.params["inputResponses"])
        let key = SuspendedCallTable.Key(request, at: id, of: principal)
        let call: SuspendedCall
        if let state, state.hasPrefix(SuspendedCallTable.prefix) {
            call = try table.withLock { table throws(RPCError) in try table.resume(state, for: key) }
            call.provideAnswers(answers?.object ?? [:], notify: request.notify)
        } else if state == nil, answers == nil, mayAskOnStream(id) {
            call = SuspendedCall(notify: request.notify)
            guard begin(call, running: request, body) else { throw AppError.busy }
        } else {
            return try await body(request)
        }
        switch try await call.next() {
        case .completed(let result): return try result.get()
        case .inputRequired(let requests):
            let state = try table.withLock { table throws(RPCError) in
                try table.save(call, for: key, at: watch.elapsed)
            }
            return ["resultType": "input_required", "inputRequests": .object(requests), "requestState": .string(state)]
        }
    }

    /// Begins a request. It ends early when the client abandons it.
    private func begin(
        _ call: SuspendedCall,
        running request: MCPRequest,
        _ body: @escaping @Sendable (MCPRequest) async throws -> JSONObject
    ) -> Bool {
        let capabilities = ClientCapabilities(request.capabilities)
        var inner = request
        inner.clientRequester = ClientRequester(
            key: "2026-07-28 \(capabilities.text)",
            protocolVersion: .latestWithHandshake,
            capabilities: capabilities,
            isAskedOnStreams: false
        ) { await call.ask($0) }
        if request.notify != nil { inner.notify = { call.send($0) } }
        return tasks.schedule { [inner] in
            _ = try? await withCancellation(when: { try await call.abandoned.value() }) {
                do { call.complete(.success(try await body(inner))) } catch { call.complete(.failure(error)) }
            }
        }
    }

    /// Returns whether the app may send requests on a stream. True for an app without a connection so far.
    private func mayAskOnStream(_ id: EndpointID) -> Bool {
        guard let server = pool.server(of: id) else { return true }
        return !server.protocolVersion.isStateless && server.sessionID != nil
    }
}

/// Suspended requests that wait for answers from their clients.
struct SuspendedCallTable: Sendable {
    /// The properties that a continued request must share with the suspended one.
    struct Key: Hashable, Sendable {
        let holder: String
        let endpoint: EndpointID
        let method: String
        /// The parameters without state, answers and `_meta`: metadata such as a trace context may differ.
        let params: JSONObject

        init(_ request: MCPRequest, at id: EndpointID, of principal: Principal) {
            (holder, endpoint, method) = (principal.holder, id, request.method)
            var params = request.params
            for name in ["requestState", "inputResponses", "_meta"] { params[name] = nil }
            self.params = params
        }
    }

    private struct Entry: Sendable {
        let key: Key
        let call: SuspendedCall
        let since: Duration
    }

    /// At most 8 suspended requests per user or grant, and 64 in total. They expire after 300 s.
    static let limitPerHolder = 8
    static let limit = 64
    static let lifetime = Duration.seconds(300)
    /// Distinguishes Patchbay's request states from those of apps.
    static let prefix = "patchbay-"

    private var entries: [String: Entry] = [:]

    /// Saves a request under a new random state of 128 bits. Abandons the expired requests.
    ///
    /// - Returns: The state.
    /// - Throws: An error if the limit is reached. The request is then abandoned.
    mutating func save(_ call: SuspendedCall, for key: Key, at now: Duration) throws(RPCError) -> String {
        for (state, entry) in entries where now - entry.since >= Self.lifetime {
            entries[state] = nil
            entry.call.abandon()
        }
        guard entries.count < Self.limit,
            entries.values.count(where: { $0.key.holder == key.holder }) < Self.limitPerHolder
        else {
            call.abandon()
            throw .internalError("too many requests wait for input: at most \(Self.limitPerHolder) per client")
        }
        let state = Self.prefix + Base62.random128Bits()
        entries[state] = Entry(key: key, call: call, since: now)
        return state
    }

    /// Removes and returns the request with that state. The key must match, and a state is valid once.
    mutating func resume(_ state: String, for key: Key) throws(RPCError) -> SuspendedCall {
        guard let entry = entries[state], entry.key == key else {
            throw .invalidParams(
                "this requestState is unknown or expired: send the request again without it"
            )
        }
        entries[state] = nil
        return entry.call
    }
}
