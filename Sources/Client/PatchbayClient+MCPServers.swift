import NIOCore
import NIOHTTP1

/// The broker's MCP servers.
extension PatchbayClient {
    /// The longest that a door is silent: it has a comment for every stream each 15 s.
    private static let doorPatience = Duration.seconds(45)
    /// An artifact of 32 MiB in base64, with room for what is around it.
    private static let messageLimit = 48 << 20

    /// Sends a message to an agent's door and gives what comes back, in order, until it has ended.
    ///
    /// - Parameters:
    ///   - post: The message.
    ///   - door: Whose.
    ///   - sent: Called when it is written: from then on it may have been carried out, whatever becomes of the answer.
    ///   - receive: While it runs nothing more is read.
    /// - Throws: `ClientError`, `CancellationError`, or what `receive` throws.
    package func exchange(
        _ post: MCPMessage,
        at door: MCPTarget,
        sent: () -> Void = {},
        _ receive: (MCPStreamEvent) async throws -> Void
    ) async throws {
        var call = OutgoingRequest(method: post.body == nil ? .GET : .POST, root: [], path: door.path, body: post.body)
        call.accept = post.body == nil ? "text/event-stream" : "application/json, text/event-stream"
        call.headers = post.headers.map { ($0.name, $0.value) }
        var events: SSEDecoder?
        var whole: [UInt8] = []
        var refusal: Int?
        try await connection(silence: max(patience, Self.doorPatience)).exchange(
            call,
            sent: sent
        ) { head in
            guard (200..<300).contains(head.status.code) else { return refusal = Int(head.status.code) }
            let isStream = head.headers.first(name: "Content-Type")?.hasPrefix("text/event-stream") == true
            if isStream { events = SSEDecoder(limit: Self.messageLimit) }
            try await receive(.opened(session: head.headers.first(name: "Mcp-Session-Id")))
        } body: { bytes in
            if events == nil {
                whole += bytes.readableBytesView
                if whole.count > Self.messageLimit { throw tooLarge(call) }
                return
            }
            for event in try events?.feed(bytes.readableBytesView) ?? [] where event.name == "message" {
                try await receive(.message(Self.line(event.data.utf8), isLast: false))
            }
        }
        if let refusal {
            try await receive(.refused(status: refusal, whole))
        } else if !whole.isEmpty {
            try await receive(.message(Self.line(whole), isLast: true))
        }
    }

    /// A line break can stand between the parts of JSON only; within its texts it is escaped (RFC 8259, section 7).
    private static func line(_ json: some Sequence<UInt8>) -> [UInt8] {
        json.map { $0 == UInt8(ascii: "\n") || $0 == UInt8(ascii: "\r") ? UInt8(ascii: " ") : $0 }
    }

    private func tooLarge(_ call: OutgoingRequest) -> ClientError {
        .notUnderstood(
            what: "the answer to \(call.name)",
            detail: "it is larger than \(Self.messageLimit) bytes"
        )
    }
}
