import Client
import JSON

/// What one client has open: its session, and the requests that are not answered yet.
actor BridgeState {
    private struct Open {
        let isStateless: Bool
        let isSubscription: Bool
        let stop: AsyncStream<Never>.Continuation
    }

    private(set) var session = MCPSessionInfo()
    private var open: [JSON: Open] = [:]

    func began(_ id: String?) { session.id = id }

    func initialized(_ answer: JSON) { session.read(answer) }

    /// Notes a request; the stream ends when its client wants no answer any more.
    func open(_ message: ClientMessage, _ id: JSON) -> AsyncStream<Never> {
        let (stopped, stop) = AsyncStream.makeStream(of: Never.self)
        open[id] = Open(
            isStateless: message.revision != nil,
            isSubscription: message.isSubscription,
            stop: stop
        )
        return stopped
    }

    func close(_ id: JSON) { open[id] = nil }

    /// Whether the request is one of 2026-07-28, which is cancelled by closing its stream and in no other way.
    func isStateless(_ id: JSON) -> Bool { open[id]?.isStateless == true }

    func cancel(_ id: JSON) { open[id]?.stop.finish() }

    /// The client has nothing more to say: what lasts until it does ends.
    func endSubscriptions() { for request in open.values where request.isSubscription { request.stop.finish() } }
}

/// What a client of the handshake era and the broker have agreed upon.
struct MCPSessionInfo: Sendable, Equatable {
    var id: String?
    private(set) var revision: String?

    /// Takes the revision out of the answer to `initialize`.
    mutating func read(_ answer: JSON) { revision = answer["result"]?["protocolVersion"]?.string ?? revision }

    /// From 2025-06-18 on the revision is said with every message.
    var headers: [MCPMessage.Header] {
        (id.map { [.init("Mcp-Session-Id", $0)] } ?? []) + (revision.map { [.init("MCP-Protocol-Version", $0)] } ?? [])
    }
}

/// Knows whether a request has its answer, also when it was sent twice.
struct ResponseDeduplicator {
    private let id: JSON?
    var isAnswered = false
    private var isAcknowledged = false

    init(_ id: JSON?) { self.id = id }

    /// Takes a message that came back.
    ///
    /// - Parameters:
    ///   - bytes: The message.
    ///   - isLast: Whether no other can follow it: then it is the answer.
    /// - Returns: The message read, when somebody wants it; nil where the client has it already.
    mutating func take(_ bytes: [UInt8], isLast: Bool) -> (() -> JSON?)? {
        if isLast {
            isAnswered = true
            return { try? JSON(parsing: bytes) }
        }
        let json = try? JSON(parsing: bytes)
        if let json, json["method"] == nil, json["id"] == id { isAnswered = true }
        // A subscription that was renewed after a restart is acknowledged anew.
        if json?["method"] == "notifications/subscriptions/acknowledged" {
            defer { isAcknowledged = true }
            if isAcknowledged { return nil }
        }
        return { json }
    }
}
