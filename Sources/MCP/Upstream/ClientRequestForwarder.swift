import Model
import Synchronization
import SystemIO

/// Forwards requests of an app to the client whose request the app is processing. Measures how long these requests
/// delay the response, because that time does not count as silence of the app.
final class ClientRequestForwarder: Sendable {
    /// The limit of concurrent app requests during one client request.
    static let limit = 8
    /// JSON-RPC 2.0, section 5.1: method not found.
    private static let methodNotFound = -32_601

    /// A request of an app in progress.
    struct PendingRequest: Sendable {
        let id: RPCID
        let method: String
        let params: JSONObject?
        let forwarder: ClientRequestForwarder
        /// Completed when the app cancels its request.
        let cancellation: Promise<Void>
    }

    private struct State {
        var open: [RPCID: Promise<Void>] = [:]
        /// By `watch`: the start of the current delay, the sum of earlier delays, and the end of the last one.
        var since = Duration.zero
        var duration = Duration.zero
        var until = Duration.zero
        var isOver = false
    }

    /// The delay of a response by requests to the client.
    struct Pause: Sendable {
        var isActive = false
        /// The sum of all delays so far.
        var duration = Duration.zero
        /// The end of the last delay; the current time during one.
        var until = Duration.zero

        func merged(with other: Pause) -> Pause {
            Pause(
                isActive: isActive || other.isActive,
                duration: duration + other.duration,
                until: max(until, other.until)
            )
        }
    }

    private let clientRequester: ClientRequester
    /// Indicates whether the forwarded requests belong to one client request and end with it.
    private let isBoundToRequest: Bool
    let watch: ElapsedTimer
    private let state = Mutex(State())

    init(_ clientRequester: ClientRequester, _ watch: ElapsedTimer, isBoundToRequest: Bool = true) {
        self.clientRequester = clientRequester
        self.watch = watch
        self.isBoundToRequest = isBoundToRequest
    }

    /// A forwarder to the same client for app requests outside of any client request.
    var unbound: ClientRequestForwarder { ClientRequestForwarder(clientRequester, watch, isBoundToRequest: false) }

    var pause: Pause {
        let now = watch.elapsed
        return state.withLock { state in
            state.open.isEmpty
                ? Pause(duration: state.duration, until: state.until)
                : Pause(isActive: true, duration: state.duration + now - state.since, until: now)
        }
    }

    /// Sends the request to the client and returns the response.
    func forward(_ request: PendingRequest) async -> Result<JSON, RPCError> {
        await clientRequester.sendRequest(request.method, request.params, isBoundToRequest)
    }

    /// Accepts a request of an app.
    ///
    /// - Throws: The error to return to the app if the client cannot be asked.
    func accept(_ request: RPCRequest) throws(RPCError) -> PendingRequest {
        guard clientRequester.capabilities.allow(request.method, request.params) else {
            throw RPCError(Self.methodNotFound, "the client does not support \(request.method)")
        }
        let (cancellation, now) = (Promise<Void>(), watch.elapsed)
        let isAccepted = state.withLock { state in
            guard !state.isOver, state.open.count < Self.limit, state.open[request.id] == nil else { return false }
            if state.open.isEmpty { state.since = now }
            state.open[request.id] = cancellation
            return true
        }
        guard isAccepted else {
            throw .internalError("at most \(Self.limit) concurrent client requests are allowed per request")
        }
        return PendingRequest(
            id: request.id,
            method: request.method,
            params: Self.withoutProgressToken(request.params),
            forwarder: self,
            cancellation: cancellation
        )
    }

    /// Ends a request of the app and the delay, if no other request is open.
    func finish(_ id: RPCID) {
        let now = watch.elapsed
        state.withLock { state in
            guard state.open.removeValue(forKey: id) != nil, state.open.isEmpty else { return }
            state.duration += now - state.since
            state.until = now
        }
    }

    /// Handles the app's cancellation of its request.
    func cancel(_ id: RPCID) { state.withLock { $0.open[id] }?.complete(.success(())) }

    /// Ends the client request and cancels all open app requests.
    func end() {
        let open = state.withLock { state in
            state.isOver = true
            return state.open
        }
        for cancellation in open.values { cancellation.complete(.success(())) }
    }

    /// Removes the progress token, because progress from the client is not forwarded to the app.
    private static func withoutProgressToken(_ params: JSONObject?) -> JSONObject? {
        guard var params, var meta = params["_meta"]?.object else { return params }
        meta["progressToken"] = nil
        params["_meta"] = meta.members.isEmpty ? nil : .object(meta)
        return params
    }
}

extension ClientRequestForwarder.PendingRequest {
    /// Forwards the request to the client, with a timeout.
    ///
    /// - Returns: The response for the app; nil if the app cancelled the request.
    func forward(within limit: Duration, clock: any Clock<Duration>) async -> Result<JSON, RPCError>? {
        try? await withThrowingTaskGroup(of: Result<JSON, RPCError>?.self) { group in
            group.addTask { await forwarder.forward(self) }
            group.addTask {
                try await clock.sleep(for: limit)
                return .failure(.internalError("the client did not answer within \(limit.components.seconds) s"))
            }
            group.addTask {
                try await cancellation.value()
                return nil
            }
            defer { group.cancelAll() }
            return try await group.next() ?? nil
        }
    }
}

/// The forwarders of the requests in flight on a client session. App requests on the session's GET stream go to one of
/// them.
final class ActiveForwarders: Sendable {
    private struct State {
        var all: [ClientRequestForwarder] = []
        /// The forwarder of app requests on the GET stream, while a client request is in flight.
        var common: ClientRequestForwarder?
    }

    private let state = Mutex(State())

    var isEmpty: Bool { state.withLock { $0.all.isEmpty } }

    func add(_ forwarder: ClientRequestForwarder) { state.withLock { $0.all.append(forwarder) } }

    /// Removes a forwarder. The last removal cancels the app requests on the GET stream.
    func remove(_ forwarder: ClientRequestForwarder) {
        let common = state.withLock { state -> ClientRequestForwarder? in
            state.all.removeAll { $0 === forwarder }
            guard state.all.isEmpty else { return nil }
            defer { state.common = nil }
            return state.common
        }
        common?.end()
    }

    /// The forwarder for app requests on the GET stream; nil without a client request in flight. All forwarders lead to
    /// the same client.
    var common: ClientRequestForwarder? {
        state.withLock { state in
            guard let last = state.all.last else { return nil }
            let common = state.common ?? last.unbound
            state.common = common
            return common
        }
    }

    /// The delay by app requests on the GET stream.
    var pause: ClientRequestForwarder.Pause { state.withLock { $0.common }?.pause ?? ClientRequestForwarder.Pause() }
}
