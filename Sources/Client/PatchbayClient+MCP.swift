import Model
import NIOCore
import NIOHTTP1

/// Requests to the broker's MCP servers.
extension PatchbayClient {
    /// Maximum size of a message in bytes: an artifact of 32 MiB in base64, with its JSON envelope.
    private static let messageLimit = 48 << 20

    /// Sends a message to an MCP server and passes each part of the response to `receive`, in order, until the response
    /// ends.
    ///
    /// - Parameters:
    ///   - message: The message.
    ///   - target: The MCP server.
    ///   - onSent: Called when the message is written. From then on the server may have executed it, even if no
    ///     response arrives.
    ///   - receive: Called with each part. Meanwhile no more data is read.
    /// - Throws: `ClientError`, `CancellationError`, or the error of `receive`.
    package func send(
        _ message: OutgoingMCPMessage,
        to target: MCPTarget,
        onSent: () -> Void = {},
        _ receive: (MCPResponsePart) async throws -> Void
    ) async throws {
        var request = OutgoingRequest(
            method: message.body == nil ? .GET : .POST,
            root: [],
            path: target.path,
            body: message.body,
            accept: message.body == nil ? "text/event-stream" : "application/json, text/event-stream"
        )
        request.headers += message.headers.map { ($0.name, $0.value) }
        var events: SSEDecoder?
        var body: [UInt8] = []
        var errorStatus: Int?
        try await connection(idleTimeout: max(timeout, Self.streamTimeout)).exchange(
            request,
            onSent: onSent
        ) { head in
            guard (200..<300).contains(head.status.code) else { return errorStatus = Int(head.status.code) }
            let isStream = head.headers.first(name: "Content-Type")?.hasPrefix("text/event-stream") == true
            if isStream { events = SSEDecoder(limit: Self.messageLimit) }
            try await receive(.opened(session: head.headers.first(name: "Mcp-Session-Id")))
        } body: { bytes in
            if events == nil {
                body += bytes.readableBytesView
                if body.count > Self.messageLimit { throw tooLarge(request) }
                return
            }
            // An event without a message begins a stream that can be resumed (MCP 2025-11-25, transports).
            for event in try events?.events(in: bytes) ?? [] where event.name == "message" && !event.data.isEmpty {
                try await receive(.message(Self.line(event.data), isLast: false))
            }
        }
        if let errorStatus {
            try await receive(.refused(status: errorStatus, body))
        } else if !body.isEmpty {
            try await receive(.message(Self.line(body), isLast: true))
        }
    }

    /// Replaces line breaks by spaces. In JSON they occur only between tokens; in strings they are escaped (RFC 8259,
    /// section 7).
    private static func line(_ json: some Sequence<UInt8>) -> [UInt8] {
        json.map { $0 == UInt8(ascii: "\n") || $0 == UInt8(ascii: "\r") ? UInt8(ascii: " ") : $0 }
    }

    private func tooLarge(_ request: OutgoingRequest) -> ClientError {
        .invalidResponse(
            what: "the answer to \(request.name)",
            detail: "it is larger than \(Self.messageLimit) bytes"
        )
    }
}
