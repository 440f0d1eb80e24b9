import Model
import Synchronization
import SystemIO

/// The requests of an app over one client session (elicitation, sampling, roots), until the client has answered.
///
/// A request belongs to the client's request on whose response it arrived. One on the GET stream may concern any of the
/// client's requests. The time that a client takes does not count as silence of the app.
final class AppRequests: Sendable {
    /// The limit of concurrent requests of the app during one request of the client.
    static let limit = 8

    /// The app's requests during one request of the client, or those on the GET stream.
    private struct Group {
        let client: ClientRequester
        var open: [RPCID: SuspendedRequest] = [:]
        var delay = ClientDelay()
    }

    private let tasks: BackgroundTasks
    private let clock: any Clock<Duration>
    private let watch: ElapsedTimer
    /// The timeout for a client's answer.
    private let timeout: Duration
    /// The groups by the ID of the client's request; nil stands for the GET stream.
    private let groups = Mutex<[RPCID?: Group]>([:])

    init(tasks: BackgroundTasks, clock: any Clock<Duration>, watch: ElapsedTimer, timeout: Duration) {
        (self.tasks, self.clock, self.watch, self.timeout) = (tasks, clock, watch, timeout)
    }

    /// Indicates whether no request of the client is in flight.
    var isEmpty: Bool { groups.withLock { $0.isEmpty } }

    /// Records a request of the client.
    func begin(_ id: RPCID, of client: ClientRequester) { groups.withLock { $0[id] = Group(client: client) } }

    /// Ends a request of the client and the app's requests during it. The last end ends also those on the GET stream.
    func end(_ id: RPCID) {
        let ended = groups.withLock { groups in
            var ended = [groups.removeValue(forKey: id)]
            if Array(groups.keys) == [nil] { ended.append(groups.removeValue(forKey: nil)) }
            return ended.compactMap { $0 }
        }
        for request in ended.flatMap(\.open.values) { request.cancel() }
    }

    /// Sends a request of the app to the client.
    ///
    /// - Parameters:
    ///   - request: The request of the app.
    ///   - id: The client's request on whose response it arrived; nil for the GET stream.
    ///   - respond: Sends the client's answer to the app. Not called if the app cancels its request.
    /// - Throws: The error to return to the app if the client cannot be asked.
    func accept(
        _ request: RPCRequest,
        during id: RPCID?,
        respond: @escaping @Sendable (RPCMessage) async -> Void
    ) throws(RPCError) {
        let params = Self.withoutProgressToken(request.params)
        let (suspended, now) = (SuspendedRequest(request.method, params, isBound: id != nil), watch.elapsed)
        let client = try groups.withLock { groups throws(RPCError) in
            // All requests in flight are of the same client.
            let known = groups[id] ?? (id == nil ? groups.values.first.map { Group(client: $0.client) } : nil)
            guard var group = known else { throw .methodNotFound(request.method) }
            guard group.client.capabilities.allow(request.method, params) else {
                throw RPCError(RPCError.methodNotFound("").code, "the client does not support \(request.method)")
            }
            guard group.open.count < Self.limit, group.open[request.id] == nil else {
                throw .internalError("at most \(Self.limit) concurrent client requests are allowed per request")
            }
            group.open[request.id] = suspended
            group.delay = group.delay.updated(isActive: true, at: now)
            groups[id] = group
            return group.client
        }
        tasks.schedule { [self] in
            let answer = await client.ask(suspended, within: timeout, clock: clock)
            // The app may have cancelled its request.
            guard groups.withLock({ $0[id]?.open[request.id] === suspended }) else { return }
            await respond(.response(id: request.id, answer))
            close(request.id, during: id)
        }
    }

    /// Handles the app's cancellation of its request.
    func cancel(_ request: RPCID, during id: RPCID?) { close(request, during: id)?.cancel() }

    /// Removes a request of the app, and ends the delay if no other request is open.
    @discardableResult private func close(_ request: RPCID, during id: RPCID?) -> SuspendedRequest? {
        let now = watch.elapsed
        return groups.withLock { groups in
            guard var group = groups[id], let closed = group.open.removeValue(forKey: request) else { return nil }
            group.delay = group.delay.updated(isActive: !group.open.isEmpty, at: now)
            groups[id] = group
            return closed
        }
    }

    /// Returns the delay of the response to a request of the client, also by the requests on the GET stream.
    func delay(of id: RPCID?) -> ClientDelay {
        let now = watch.elapsed
        return groups.withLock { groups in
            Set([id, nil]).compactMap { groups[$0]?.delay }.reduce(ClientDelay()) {
                $0.merged(with: $1.updated(isActive: $1.isActive, at: now))
            }
        }
    }

    /// Removes the progress token, because progress from the client is not forwarded to the app.
    private static func withoutProgressToken(_ params: JSONObject?) -> JSONObject? {
        guard var params, var meta = params["_meta"]?.object else { return params }
        meta["progressToken"] = nil
        params["_meta"] = meta.members.isEmpty ? nil : .object(meta)
        return params
    }
}
