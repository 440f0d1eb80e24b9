import JSON
import Model
import AccessControl
import SystemIO

/// Messages to the app, one by one, over streams that it keeps open or over new ones.
extension UpstreamSession {
    /// Tells the app something that is not answered.
    func tell(_ message: RPCMessage, by passages: [AuthorizedRoute]) async throws {
        guard let known = introduction?.met else { return }
        let (method, params): (String, JSONObject) =
            if case .notification(let notification) = message {
                (notification.method, notification.params ?? [:])
            } else { ("", [:]) }
        _ = try await exchange(
            message.json,
            at: known.place,
            known.headers(for: method, params),
            passages,
            awaiting: nil,
            limits: .introduction,
            mayKeep: false
        )
    }

    /// One message over a kept stream or a new one.
    ///
    /// The app may be closing a kept one at this very moment, and nobody could say then whether it got the message: what it
    /// must not get twice goes over a new one.
    func exchange(
        _ message: JSON?,
        at place: UpstreamTransport,
        _ headers: [(name: String, value: String)],
        _ passages: [AuthorizedRoute],
        awaiting id: RPCID?,
        limits: UpstreamLimits,
        admission: Admission? = nil,
        mayKeep: Bool = true,
        isFarewell: Bool = false,
        inquirer: ClientRequestForwarder? = nil,
        opened: (@Sendable () -> Void)? = nil,
        notify: (@Sendable (RPCNotification) -> Void)? = nil
    ) async throws -> UpstreamResponse {
        guard case .http(let path) = place else {
            return try await exchangeLines(message, passages, awaiting: id, limits: limits, admission, notify)
        }
        var (mayKeep, limits) = (mayKeep, limits)
        let end = watch.elapsed + limits.longest
        while true {
            let (connection, passage, isKept) = try await connect(passages, mayKeep: mayKeep, within: limits.longest)
            limits.longest = end - watch.elapsed
            let call = UpstreamHTTPRequest(
                path: path,
                route: passage.route,
                secret: passage.secret,
                headers: headers,
                message: message,
                isFarewell: isFarewell
            )
            let listener = UpstreamMessageHandler(
                id,
                line: self,
                passages: passages,
                inquirer: { [inquirers] in inquirer ?? (id == nil ? inquirers.common : nil) },
                notify: notify,
                send: send,
                tell: tell
            )
            var exchange = UpstreamRoundTrip(
                awaiting: id,
                limits: limits,
                clock: clock,
                watch: watch,
                redactor: TokenRedactor(passages),
                pause: { [inquirers] in inquirers.pause.and(inquirer?.pause ?? ClientRequestForwarder.Pause()) },
                opened: opened
            ) { listener.heed($0) }
            do {
                let answer = try await exchange.run(call.bytes, over: connection, by: admission)
                let kept = PooledConnection(connection, rest: exchange.rest, since: watch.elapsed)
                if kept.mayBecomeReady { keep(kept) }
                return answer
            } catch let trouble as Trouble where isKept && trouble == .unwritten {
                // The app had closed it; a new stream tells whether the app is there.
                mayKeep = false
            }
        }
    }

    /// What a dialer takes at most for each route; a shorter limit of the caller's is watched beside it.
    private static let dialLimit = Duration.seconds(5)

    private func connect(
        _ passages: [AuthorizedRoute],
        mayKeep: Bool,
        within limit: Duration
    ) async throws -> (UpstreamConnection, AuthorizedRoute, isKept: Bool) {
        guard limit < Self.dialLimit * passages.count else { return try await connect(passages, mayKeep: mayKeep) }
        let connected = try await withDeadline(limit, clock: clock) {
            try await self.connect(passages, mayKeep: mayKeep)
        }
        guard let connected else {
            throw Trouble.unreachable(DialError(.timedOut, "\(id) was not reached within \(limit)"))
        }
        return connected
    }

    func connect(
        _ passages: [AuthorizedRoute],
        mayKeep: Bool
    ) async throws -> (UpstreamConnection, AuthorizedRoute, isKept: Bool) {
        if mayKeep, let passage = passages.first {
            while var kept = idle.popLast() {
                guard kept.connection.route == passage.route, watch.elapsed - kept.since < PooledConnection.lifetime
                else {
                    continue
                }
                if let connection = kept.take() { return (connection, passage, true) }
            }
        }
        var failures: [DialError] = []
        for passage in passages {
            do {
                let carrier = try await dialer.dial(passage.route)
                guard carrier.early.isEmpty else { throw Trouble.noMCP }
                return (UpstreamConnection(over: passage.route, carrier), passage, false)
            } catch let failure as DialError {
                failures.append(failure)
            }
            try Task.checkCancellation()
        }
        throw Trouble.unreachable(failures.first ?? DialError(.noRoute, "\(id) has no route now"))
    }

    /// Closes the streams that have been kept long enough.
    ///
    /// - Returns: Whether some are left, so that it has to be done again.
    func tidy() async -> Bool {
        if let stream = lines, await !stream.isWorthKeeping(), lines === stream { lines = nil }
        let now = watch.elapsed
        idle.removeAll { now - $0.since >= PooledConnection.lifetime }
        isTidying = !idle.isEmpty || lines != nil
        return isTidying
    }

    func keep(_ connection: PooledConnection) {
        idle.append(connection)
        beginTidying()
    }

    func beginTidying() {
        guard !isTidying else { return }
        isTidying = true
        send(.tidy(self))
    }
}
