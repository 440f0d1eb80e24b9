import AccessControl
import Model
import Synchronization
import SystemIO

/// Runs requests of 2026-07-28 clients, which are asked for input by results, at apps that ask on a stream.
final class SuspendedRequests: Sendable {
    /// Methods during which 2026-07-28 lets a server request input.
    private static let methods: Set = ["tools/call", "prompts/get", "resources/read"]

    private let context: ProxyContext
    private let pool: UpstreamSessionPool
    private let watch: ElapsedTimer
    /// The requests that wait for input from their clients.
    private let store = Mutex(SuspendedRequestStore())

    init(_ context: ProxyContext, over pool: UpstreamSessionPool) {
        self.context = context
        self.pool = pool
        watch = ElapsedTimer(context.clock)
    }

    /// Returns whether an app may ask the client for input during a request, by results.
    static func mayAsk(during request: MCPRequest) -> Bool {
        request.supportsInputRequired && methods.contains(request.method)
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
        let (state, answers) = (request.params["requestState"]?.string, request.params["inputResponses"]?.object)
        let isPatchbayState = state?.hasPrefix(SuspendedRequestStore.prefix) == true
        let isNew = state == nil && request.params["inputResponses"] == nil
        guard isPatchbayState || isNew && mayAskOnStream(id) else { return try await body(request) }
        let key = SuspendedRequestStore.Key(request, at: id, of: principal)
        let suspended: SuspendedRequest
        if isPatchbayState, let state {
            suspended = try store.withLock { store throws(RPCError) in try store.resume(state, for: key) }
            suspended.provideAnswers(answers ?? [:], notify: request.notify)
        } else {
            suspended = SuspendedRequest(notify: request.notify)
            guard begin(suspended, running: request, body) else { throw AppError.busy }
        }
        switch try await suspended.next() {
        case .completed(let result): return try result.get()
        case .inputRequired(let requests): return try suspend(suspended, for: key, asking: requests)
        }
    }

    /// Begins a request. It ends early when the client abandons it.
    private func begin(
        _ suspended: SuspendedRequest,
        running request: MCPRequest,
        _ body: @escaping @Sendable (MCPRequest) async throws -> JSONObject
    ) -> Bool {
        let capabilities = ClientCapabilities(request.capabilities)
        var inner = request
        inner.clientRequester = ClientRequester(
            key: "2026-07-28 \(capabilities.text)",
            protocolVersion: .latestWithHandshake,
            capabilities: capabilities,
            isSingleClient: false,
            handlesInputRequired: false,
            sendRequest: { method, params, _ in await suspended.ask(method, params) }
        )
        if request.notify != nil { inner.notify = { suspended.send($0) } }
        return context.tasks.schedule { [inner] in
            _ = try? await withCancellation(when: { try await suspended.abandoned.value() }) {
                do { suspended.complete(.success(try await body(inner))) } catch { suspended.complete(.failure(error)) }
            }
        }
    }

    private func suspend(
        _ suspended: SuspendedRequest,
        for key: SuspendedRequestStore.Key,
        asking requests: JSONObject
    ) throws(RPCError) -> JSONObject {
        do {
            let (state, expired) = try store.withLock { store throws(RPCError) in
                try store.save(suspended, for: key, at: watch.elapsed)
            }
            for old in expired { old.abandoned.complete(.success(())) }
            return [
                "resultType": "input_required", "inputRequests": .object(requests), "requestState": .string(state),
            ]
        } catch {
            suspended.abandoned.complete(.success(()))
            throw error
        }
    }

    /// Returns whether the app may send requests on a stream. True for an app without a connection so far.
    private func mayAskOnStream(_ id: EndpointID) -> Bool {
        guard let server = pool.server(of: id) else { return true }
        return !server.protocolVersion.isStateless && server.sessionID != nil
    }
}

/// Suspended requests that wait for answers from their clients.
struct SuspendedRequestStore: Sendable {
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
        let request: SuspendedRequest
        let since: Duration
    }

    /// At most 8 suspended requests per user or grant, and 64 in total. They expire after 300 s.
    static let limitPerHolder = 8
    static let limit = 64
    static let lifetime = Duration.seconds(300)
    /// Distinguishes Patchbay's request states from those of apps.
    static let prefix = "patchbay-"

    private var entries: [String: Entry] = [:]

    /// Saves a request under a new random state of 128 bits. Returns the state and the expired requests, which the
    /// caller must abandon.
    ///
    /// - Throws: An error if the limit is reached.
    mutating func save(
        _ request: SuspendedRequest,
        for key: Key,
        at now: Duration
    ) throws(RPCError) -> (state: String, expired: [SuspendedRequest]) {
        let expired = entries.filter { now - $0.value.since >= Self.lifetime }
        for state in expired.keys { entries[state] = nil }
        guard entries.count < Self.limit,
            entries.values.count(where: { $0.key.holder == key.holder }) < Self.limitPerHolder
        else {
            throw .internalError(
                "too many requests wait for input: at most \(Self.limitPerHolder) per client"
            )
        }
        let state = Self.prefix + Base62.random128Bits()
        entries[state] = Entry(key: key, request: request, since: now)
        return (state, expired.values.map(\.request))
    }

    /// Removes and returns the request with that state. The key must match, and a state is valid once.
    mutating func resume(_ state: String, for key: Key) throws(RPCError) -> SuspendedRequest {
        guard let entry = entries[state], entry.key == key else {
            throw .invalidParams(
                "this requestState is unknown or expired: send the request again without it"
            )
        }
        entries[state] = nil
        return entry.request
    }
}
