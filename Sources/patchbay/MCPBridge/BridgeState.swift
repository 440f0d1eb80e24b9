import Client
import Model
import SystemIO

/// The state of one client: its session and its pending requests.
actor BridgeState {
    private struct OpenRequest {
        let isStateless: Bool
        let isSubscription: Bool
        let stop: AsyncStream<Never>.Continuation
    }

    private(set) var session = MCPSessionInfo()
    private var open: [JSON: OpenRequest] = [:]
    /// The client's `initialize`; nil for a client without a handshake.
    private(set) var handshake: ClientMessage?
    /// True after the broker's own response to `initialize`.
    private(set) var hasSession = false
    /// True after the first response of the broker.
    private(set) var hasConnected = false
    /// True after a request that failed before the broker responded. Further requests do not wait for the broker.
    private(set) var hasReportedFailure = false
    /// True if the client has a list of tools that the bridge made up, because the broker or the app was missing.
    private(set) var hasPlaceholder = false
    /// The number of GET streams that the broker has opened.
    private(set) var openedStreams = 0
    private var questions: [JSON: Promise<JSON>] = [:]
    private var lastNumber = 0

    func setHandshake(_ message: ClientMessage) { handshake = message }

    func setSessionID(_ id: String?) { session.id = id }

    /// Stores the protocol version from the response to `initialize`.
    func initialized(_ response: JSON) {
        session.read(response)
        hasSession = response["result"] != nil
    }

    /// Forgets the session, which the broker does not know. The next request begins a new one.
    func endSession() { (session.id, hasSession) = (nil, false) }

    func connected() { hasConnected = true }

    func streamOpened() { openedStreams += 1 }

    func servedPlaceholder() { hasPlaceholder = true }

    func reportedFailure() { hasReportedFailure = true }

    /// Returns whether the client has a placeholder, and forgets it.
    func takePlaceholder() -> Bool {
        defer { hasPlaceholder = false }
        return hasPlaceholder
    }

    /// Returns a new ID for a request of the bridge.
    func newID() -> JSON {
        lastNumber += 1
        return .string("patchbay-\(lastNumber)")
    }

    /// Registers a question to the client, and returns its ID and the answer.
    func beginQuestion() -> (id: JSON, answer: Promise<JSON>) {
        let (id, answer) = (newID(), Promise<JSON>())
        questions[id] = answer
        return (id, answer)
    }

    /// Passes a response of the client to its question. Returns false for a response to an app.
    func answer(_ id: JSON, _ response: JSON) -> Bool {
        guard let question = questions.removeValue(forKey: id) else { return false }
        question.complete(.success(response))
        return true
    }

    /// Ends the questions at the end of the input, because no answer can arrive any more.
    func endQuestions() {
        for question in questions.values { question.complete(.success(.null)) }
        questions = [:]
    }

    /// Registers a request. The returned stream finishes when the client cancels the request.
    func beginRequest(_ message: ClientMessage, _ id: JSON) -> AsyncStream<Never> {
        let (stopped, stop) = AsyncStream.makeStream(of: Never.self)
        open[id] = OpenRequest(
            isStateless: message.revision != nil,
            isSubscription: message.isSubscription,
            stop: stop
        )
        return stopped
    }

    func endRequest(_ id: JSON) { open[id] = nil }

    /// Returns true for a request of protocol version 2026-07-28, which is cancelled only by closing its stream.
    func isStateless(_ id: JSON) -> Bool { open[id]?.isStateless == true }

    func cancel(_ id: JSON) { open[id]?.stop.finish() }

    /// Ends all subscriptions; called at the end of the input.
    func endSubscriptions() { for request in open.values where request.isSubscription { request.stop.finish() } }
}

/// The session of a client with a protocol version before 2026-07-28: session ID and negotiated version.
struct MCPSessionInfo: Sendable, Equatable {
    var id: String?
    private(set) var revision: String?

    /// Reads the protocol version from the response to `initialize`.
    mutating func read(_ response: JSON) { revision = response["result"]?["protocolVersion"]?.string ?? revision }

    /// The headers of every request. `MCP-Protocol-Version` is required since 2025-06-18.
    var headers: [OutgoingMCPMessage.Header] {
        (id.map { [.init("Mcp-Session-Id", $0)] } ?? []) + (revision.map { [.init("MCP-Protocol-Version", $0)] } ?? [])
    }
}

/// Tracks whether a request has a response, and drops duplicates after a retry.
struct ResponseDeduplicator {
    private let id: JSON?
    var hasResponse = false
    private var isAcknowledged = false

    init(_ id: JSON?) { self.id = id }

    /// Processes a message from the broker.
    ///
    /// - Parameters:
    ///   - bytes: The message.
    ///   - isLast: True if no message follows; then this message is the response.
    /// - Returns: A closure that parses the message, or nil for a duplicate that must not be forwarded.
    mutating func receive(_ bytes: [UInt8], isLast: Bool) -> (() -> JSON?)? {
        if isLast {
            hasResponse = true
            return { try? JSON(parsing: bytes, maxDepth: JSON.maxBrokerDepth) }
        }
        let json = try? JSON(parsing: bytes, maxDepth: JSON.maxBrokerDepth)
        if let json, json["method"] == nil, json["id"] == id { hasResponse = true }
        // The broker acknowledges a subscription again when the bridge renews the subscription after a restart.
        if json?["method"] == "notifications/subscriptions/acknowledged" {
            defer { isAcknowledged = true }
            if isAcknowledged { return nil }
        }
        return { json }
    }
}
