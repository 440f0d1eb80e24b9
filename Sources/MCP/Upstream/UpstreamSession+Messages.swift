import AccessControl
import JSON
import Model
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

/// What an answer means.
extension UpstreamSession {
    static func noRoute(to endpoint: Endpoint) -> DialError {
        DialError(.noRoute, "\(endpoint.id) has no route now; start the app, or see `patchbay show \(endpoint.id)`")
    }

    /// How an answer shows that the server knows nothing of what was agreed with the one before it.
    enum Misfit: Hashable, Sendable {
        /// The protocol says that the request was not processed.
        case unprocessed
        /// The words of the error sound so; nothing says that the request was not processed.
        case perhaps
    }

    static func misfit(of answer: UpstreamResponse, _ known: ServerInfo) -> Misfit? {
        // MCP 2025-03-26 and later, session management: 404 means that a new session must be begun.
        if answer.status == 404, known.sessionID != nil { return .unprocessed }
        guard answer.status == 400, case .failure(let error)? = answer.outcome else { return nil }
        // HeaderMismatch and UnsupportedProtocolVersion of 2026-07-28; servers before it say in words what they miss.
        if error.code == -32_020 || error.code == -32_022 { return .unprocessed }
        let words = error.message.lowercased()
        return ["session", "_meta", "protocol"].contains { words.contains($0) } ? .perhaps : nil
    }

    /// - Throws: `Trouble`.
    static func reply(_ answer: UpstreamResponse, _ passages: [AuthorizedRoute]) throws(Trouble) -> AppReply {
        if let trouble = refusal(answer, passages) { throw trouble }
        switch answer.outcome {
        case .success(let result)?:
            guard let object = result.object else { throw .unclear("a result that is no object") }
            return AppReply(outcome: .success(object), size: answer.size, permit: answer.permit)
        case .failure(let error)?: return AppReply(outcome: .failure(error), size: answer.size)
        case nil: throw .unclear("status \(answer.status)")
        }
    }

    /// What the status alone says.
    static func refusal(_ answer: UpstreamResponse, _ passages: [AuthorizedRoute]) -> Trouble? {
        switch answer.status {
        case 401: .wantsSecret(passages.contains { $0.secret != nil } ? .rejected : .missing)
        case 300..<400: .unclear("a redirection, which is not followed")
        default: nil
        }
    }

    /// Whether the request may be at work in the app while nobody waits for it.
    static func isGivenUp(_ error: any Error) -> Bool {
        if case Trouble.silent = error { return true }
        return error is CancellationError
    }
}

/// What an app answered to one message.
struct UpstreamResponse: Sendable {
    let status: Int
    /// The value of `Mcp-Session-Id`, if it can be given back.
    let sessionID: String?
    /// Nil where none came: to a notification, or where the status says it all.
    let outcome: Result<JSON, RPCError>?
    /// Of the body.
    let size: Int
    /// Held while the answer is in memory as the app gave it; nil for one that is not heavy.
    var permit: Permit?
}

/// What an app answered to a request: a result, or an error of its own.
struct AppReply: Sendable {
    let outcome: Result<JSONObject, RPCError>
    /// In bytes.
    let size: Int
    /// Held until the result has been made smaller; nil for one that is not heavy.
    var permit: Permit?
}
