import Client
import JSON

/// The state of one client: its session and its pending requests.
actor BridgeState {
    private struct OpenRequest {
        let isStateless: Bool
        let isSubscription: Bool
        let stop: AsyncStream<Never>.Continuation
    }

    private(set) var session = MCPSessionInfo()
    private var open: [JSON: OpenRequest] = [:]

    func setSessionID(_ id: String?) { session.id = id }

    /// Stores the protocol version from the response to `initialize`.
    func initialized(_ response: JSON) { session.read(response) }

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
            return { try? JSON(parsing: bytes) }
        }
        let json = try? JSON(parsing: bytes)
        if let json, json["method"] == nil, json["id"] == id { hasResponse = true }
        // The broker acknowledges a subscription again when the bridge renews the subscription after a restart.
        if json?["method"] == "notifications/subscriptions/acknowledged" {
            defer { isAcknowledged = true }
            if isAcknowledged { return nil }
        }
        return { json }
    }
}
