import AccessControl
import JSON
import Model
import SystemIO

/// Hearing from the app what changes in it.
extension UpstreamSession {
    /// Resources about which one app is asked to tell, at most.
    private static let addressLimit = 256

    /// Takes a request about subscriptions that the app itself has no word for: in the stateless era it stands in what the
    /// stream of changes is asked for.
    func subscribe(_ request: MCPRequest, _ known: ServerInfo) -> AppReply? {
        guard known.revision.isStateless, let uri = request.params["uri"]?.string else { return nil }
        switch request.method {
        case "resources/subscribe" where addresses.count < Self.addressLimit:
            if addresses.insert(uri).inserted { renewal?.settle(.success(())) }
        case "resources/unsubscribe": addresses.remove(uri)
        default: return nil
        }
        return AppReply(outcome: .success([:]), size: 0)
    }

    /// Remembers what the app agreed to tell about, for its next launch.
    func note(_ request: MCPRequest, _ reply: AppReply) {
        guard case .success = reply.outcome else { return }
        if request.method == "logging/setLevel", own != nil { logLevel = request.params["level"] }
        guard let uri = request.params["uri"]?.string else { return }
        switch request.method {
        case "resources/subscribe" where addresses.count < Self.addressLimit: addresses.insert(uri)
        case "resources/unsubscribe": addresses.remove(uri)
        default: break
        }
    }

    /// Follows the app's changes until its stream ends; what it says goes where everything goes that it says.
    ///
    /// - Returns: False when this app tells nothing.
    /// - Throws: `Trouble`, `CancellationError`.
    func listen(to endpoint: Endpoint, by passages: [AuthorizedRoute]) async throws -> Bool {
        while true {
            let known = try await meet(endpoint, by: passages)
            guard known.tellsOfChanges else { return false }
            let renewal = Promise<Void>()
            self.renewal = renewal
            let status = try await withThrowingTaskGroup(of: Int?.self) { group in
                group.addTask {
                    try await renewal.value()
                    return nil
                }
                group.addTask {
                    known.revision.isStateless
                        ? try await self.listenStateless(known, passages) : try await self.listen(known, passages)
                }
                defer { group.cancelAll() }
                return try await group.next() ?? nil
            }
            // Asked for more meanwhile, or quiet for so long that the app may have gone without a word: the same again.
            guard let status else { continue }
            // MCP 2025-03-26 and later: a server may have no such stream.
            if status == 405 { return false }
            if status == 404 { introduction = nil }
            return true
        }
    }

    /// The eras of the handshake have a stream for whatever the server has to say.
    ///
    /// - Returns: Its status; nil where nothing came for long.
    private func listen(_ known: ServerInfo, _ passages: [AuthorizedRoute]) async throws -> Int? {
        for uri in addresses.sorted() {
            // Of a session that has just begun the server knows no subscription; an old one it is told twice.
            lastID += 1
            let request = RPCRequest(
                id: .number(JSONNumber(lastID)),
                method: "resources/subscribe",
                params: ["uri": .string(uri)]
            )
            _ = try await exchange(
                RPCMessage.request(request).json,
                at: known.place,
                known.headers(for: request.method, [:]),
                passages,
                awaiting: request.id,
                limits: .introduction
            )
        }
        do {
            return try await exchange(
                nil,
                at: known.place,
                known.headers(for: "", [:]),
                passages,
                awaiting: nil,
                limits: listening
            ).status
        } catch Trouble.silent { return nil }
    }

    /// - Returns: Its status, 405 where there is none; nil where nothing came for long.
    private func listenStateless(_ known: ServerInfo, _ passages: [AuthorizedRoute]) async throws -> Int? {
        lastID += 1
        var filter: JSONObject = ["toolsListChanged": true, "promptsListChanged": true, "resourcesListChanged": true]
        if !addresses.isEmpty { filter["resourceSubscriptions"] = .array(addresses.sorted().map { .string($0) }) }
        var params: JSONObject = ["notifications": .object(filter)]
        params["_meta"] = known.meta(nil, capabilities: [:]).map { .object($0) }
        let number = JSONNumber(lastID)
        let request = RPCRequest(id: .number(number), method: "subscriptions/listen", params: params)
        let answer: UpstreamResponse
        do {
            answer = try await exchange(
                RPCMessage.request(request).json,
                at: known.place,
                known.headers(for: request.method, params),
                passages,
                awaiting: request.id,
                limits: known.place == .lines ? .following : listening
            )
        } catch {
            if known.place == .lines { cancel(number, passages) }
            guard let trouble = error as? Trouble, trouble.isSilence else { throw error }
            return nil
        }
        // An error is a server that has no such stream, whatever its status.
        guard case .failure? = answer.outcome else { return answer.status }
        return 405
    }
}

extension ServerInfo {
    /// Whether its server says that it tells when something changes.
    var tellsOfChanges: Bool {
        let switches = [("tools", "listChanged"), ("prompts", "listChanged"), ("resources", "listChanged")]
        return (switches + [("resources", "subscribe")]).contains { capabilities[$0.0]?[$0.1] == true }
    }
}

/// A session that is one caller's alone: the app may ask in it, on the stream of a request or on one beside it.
extension UpstreamSession {
    /// How long a request waits for the stream beside it; a server that keeps us waiting has none.
    private static let openingLimit = Duration.seconds(1)
    /// After the stream has ended while requests run.
    private static let pause = Duration.milliseconds(500)

    /// Sees to it that the stream is read on which the app may ask beside the requests (`roots/list` of the Python SDK). Before
    /// it is there such a question would go nowhere, and the request wait for ever.
    func attend(_ known: ServerInfo, _ passages: [AuthorizedRoute]) async {
        guard own != nil, let session = known.sessionID, attendance?.session != session else { return }
        attendance?.end.settle(.success(()))
        let (opened, end) = (Promise<Void>(), Promise<Void>())
        attendance = (session, end)
        send(.attend(self, known, passages, opened: opened, until: end))
        _ = try? await withDeadline(Self.openingLimit, clock: clock) { try await opened.value() }
    }

    /// Reads that stream until it ends, or another one is in its place.
    func readStream(
        of known: ServerInfo,
        _ passages: [AuthorizedRoute],
        opened: Promise<Void>,
        until end: Promise<Void>
    ) async {
        await withTaskGroup(of: Void.self) { group in
            group.addTask { try? await end.value() }
            group.addTask { await self.read(known, passages, opened) }
            await group.next()
            group.cancelAll()
        }
        opened.settle(.success(()))
        if attendance?.end === end { attendance = nil }
    }

    private func read(_ known: ServerInfo, _ passages: [AuthorizedRoute], _ opened: Promise<Void>) async {
        repeat {
            let answer = try? await exchange(
                nil,
                at: known.place,
                known.headers(for: "", [:]),
                passages,
                awaiting: nil,
                limits: listening,
                mayKeep: false,
                opened: { opened.settle(.success(())) }
            )
            // MCP 2025-03-26 and later: a server may have no such stream.
            guard let answer, answer.status != 405, !inquirers.isEmpty, introduction?.met == known else { return }
            try? await clock.sleep(for: Self.pause)
        } while !Task.isCancelled
    }

    /// Gives the session up, and lets the app know.
    func retire(by passages: [AuthorizedRoute]) async {
        attendance?.end.settle(.success(()))
        guard let known = introduction?.met, known.sessionID != nil else { return }
        part()
        _ = try? await exchange(
            nil,
            at: known.place,
            known.headers(for: "", [:]),
            passages,
            awaiting: nil,
            limits: .introduction,
            mayKeep: false,
            isFarewell: true
        )
    }

    /// What the app's server is that everybody meets, if it may have sessions that are one caller's alone.
    func mayHaveSessions(_ known: ServerInfo, speaking isStateless: Bool) -> Bool {
        if known.revision.isStateless {
            return isStateless && (withoutSessions == nil || withoutSessions != introduction?.of)
        }
        return known.sessionID != nil
    }

    /// This launch of the app gives no sessions.
    func noteNoSessions() { withoutSessions = introduction?.of }
}
