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
        /// The open requests, each with the promise that ends it without an answer.
        var open: [RPCID: Promise<Void>] = [:]
        /// The delay by earlier requests, and the start of the current delay.
        var earlier = ClientDelay()
        var since = Duration.zero

        func delay(at now: Duration) -> ClientDelay {
            open.isEmpty
                ? earlier : ClientDelay(isActive: true, duration: earlier.duration + now - since, until: now)
        }
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
        for promise in ended.flatMap(\.open.values) { promise.complete(.success(())) }
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
        let (cancellation, now) = (Promise<Void>(), watch.elapsed)
        let client = try groups.withLock { groups throws(RPCError) in
            // All requests in flight are of the same client.
            let known = groups[id] ?? (id == nil ? groups.values.first.map { Group(client: $0.client) } : nil)
            guard var group = known else { throw .methodNotFound(request.method) }
            try group.client.requireCapability(for: request.method, request.params)
            guard group.open.count < Self.limit, group.open[request.id] == nil else {
                throw .internalError("at most \(Self.limit) concurrent client requests are allowed per request")
            }
            if group.open.isEmpty { group.since = now }
            group.open[request.id] = cancellation
            groups[id] = group
            return group.client
        }
        tasks.schedule { [self] in
            let answer = try? await withCancellation(when: { try await cancellation.value() }) { [clock, timeout] in
                let params = Self.withoutProgressToken(request.params)
                return await client.ask(request.method, params, isBound: id != nil, within: timeout, clock: clock)
            }
            if let answer { await respond(.response(id: request.id, answer)) }
            finish(request.id, during: id)
        }
    }

    /// Ends a request of the app, and the delay if no other request is open.
    private func finish(_ request: RPCID, during id: RPCID?) {
        let now = watch.elapsed
        groups.withLock { groups in
            guard var group = groups[id], group.open.removeValue(forKey: request) != nil else { return }
            if group.open.isEmpty {
                group.earlier = ClientDelay(duration: group.earlier.duration + now - group.since, until: now)
            }
            groups[id] = group
        }
    }

    /// Handles the app's cancellation of its request.
    func cancel(_ request: RPCID, during id: RPCID?) {
        groups.withLock { $0[id]?.open[request] }?.complete(.success(()))
    }

    /// Returns the delay of the response to a request of the client, also by the requests on the GET stream.
    func delay(of id: RPCID?) -> ClientDelay {
        let now = watch.elapsed
        return groups.withLock { groups in
            Set([id, nil]).compactMap { groups[$0]?.delay(at: now) }.reduce(ClientDelay()) { $0.merged(with: $1) }
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
