import Client
import Model
import Synchronization
import SystemIO

/// The state of one client: its session and its pending requests. A state machine without I/O.
struct BridgeState: Sendable {
    /// The client's session with the broker.
    private enum Session {
        /// The client has sent no `initialize`, and needs none since MCP 2026-07-28.
        case none
        /// The broker has not responded to the client's `initialize`, or has lost the session.
        case pending(ClientMessage)
        case begun(ClientMessage)
    }

    /// The broker, as far as its responses show.
    private enum Broker {
        case untried
        /// A request failed before the broker responded to any. Further requests do not wait for the broker.
        case missing
        case found
    }

    private struct OpenRequest {
        let isStateless: Bool
        let isSubscription: Bool
        let stop: AsyncStream<Never>.Continuation
    }

    /// The session ID and the negotiated version, for the headers of requests.
    private(set) var info = MCPSessionInfo()
    private var session = Session.none
    private var broker = Broker.untried
    /// True if the client has a list of tools that the bridge made up, because the broker or the app was missing.
    private var hasPlaceholder = false
    /// True if the broker has opened a GET stream since the last look.
    private var hasOpenedStream = false
    private var requests: [JSON: OpenRequest] = [:]
    private var questions: [JSON: Promise<JSON>] = [:]
    private var lastNumber = 0

    /// The client's `initialize`; nil for a client without a handshake.
    var handshake: ClientMessage? {
        switch session {
        case .none: nil
        case .pending(let message), .begun(let message): message
        }
    }

    /// The client's `initialize` if the broker has to get it before other messages.
    var pendingHandshake: ClientMessage? { if case .pending(let message) = session { message } else { nil } }

    /// True after the broker's own response to `initialize`.
    var hasSession: Bool { if case .begun = session { true } else { false } }

    /// The limit for retries of a request. The first call reports a missing broker soon.
    var retryLimit: Duration {
        switch broker {
        case .untried: .seconds(2)
        case .missing: .zero
        case .found: .seconds(20)
        }
    }

    mutating func receivedHandshake(_ message: ClientMessage) { session = .pending(message) }

    /// Records that the broker has accepted a message. Only the response to `initialize` has a session ID.
    mutating func connected(_ message: ClientMessage? = nil, sessionID: String? = nil) {
        broker = .found
        if message?.isInitialize == true { info.id = sessionID }
    }

    /// Stores the protocol version from the response to `initialize`.
    mutating func initialized(_ response: JSON) {
        info.read(response)
        if let handshake { session = response["result"] == nil ? .pending(handshake) : .begun(handshake) }
    }

    /// Forgets the session, which the broker does not know. The next request begins a new one.
    mutating func endSession() {
        info.id = nil
        if let handshake { session = .pending(handshake) }
    }

    /// Records that a message failed. A client that asked for the tools has a placeholder then.
    mutating func failed(_ message: ClientMessage, isLost: Bool) {
        if broker == .untried { broker = .missing }
        let isAnswered = !isLost && message.expectsResponse
        if isAnswered, ["initialize", "server/discover", "tools/list"].contains(message.method) {
            hasPlaceholder = true
        }
    }

    mutating func streamOpened() { hasOpenedStream = true }

    /// Returns whether the broker has opened a GET stream since the last call.
    mutating func takeOpenedStream() -> Bool {
        defer { hasOpenedStream = false }
        return hasOpenedStream
    }

    /// Returns whether the client has a placeholder, and forgets it.
    mutating func takePlaceholder() -> Bool {
        defer { hasPlaceholder = false }
        return hasPlaceholder
    }
}

/// Pending requests of the client, and pending questions to it.
extension BridgeState {
    /// Registers a question to the client, and returns its ID and the answer.
    mutating func beginQuestion() -> (id: JSON, answer: Promise<JSON>) {
        lastNumber += 1
        let (id, answer) = (JSON.string("patchbay-\(lastNumber)"), Promise<JSON>())
        questions[id] = answer
        return (id, answer)
    }

    /// Passes a response of the client to its question. Returns false for a response to an app.
    mutating func answer(_ id: JSON, _ response: JSON) -> Bool {
        guard let question = questions.removeValue(forKey: id) else { return false }
        question.complete(.success(response))
        return true
    }

    /// Registers a request. The returned stream finishes when the client cancels the request.
    mutating func beginRequest(_ message: ClientMessage, _ id: JSON) -> AsyncStream<Never> {
        let (stopped, stop) = AsyncStream.makeStream(of: Never.self)
        requests[id] = OpenRequest(
            isStateless: message.revision != nil,
            isSubscription: message.isSubscription,
            stop: stop
        )
        return stopped
    }

    mutating func endRequest(_ id: JSON) { requests[id] = nil }

    /// Returns true for a request of protocol version 2026-07-28, which is cancelled only by closing its stream.
    func isStateless(_ id: JSON) -> Bool { requests[id]?.isStateless == true }

    func cancel(_ id: JSON) { requests[id]?.stop.finish() }

    /// Ends the questions and subscriptions at the end of the input, because no message can arrive any more.
    mutating func endInput() {
        for question in questions.values { question.complete(.success(.null)) }
        questions = [:]
        for request in requests.values where request.isSubscription { request.stop.finish() }
    }
}

/// The state of one client, which the tasks of the bridge share.
final class BridgeSession: Sendable {
    private let state = Mutex(BridgeState())

    var current: BridgeState { state.withLock { $0 } }

    @discardableResult
    func update<Value: Sendable>(_ change: (inout BridgeState) -> Value) -> Value { state.withLock { change(&$0) } }
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
