package import JSON
package import Model
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
            body: message.body
        )
        request.accept = message.body == nil ? "text/event-stream" : "application/json, text/event-stream"
        request.headers = message.headers.map { ($0.name, $0.value) }
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
            for event in try events?.events(in: bytes) ?? [] where event.name == "message" {
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

/// Tools of apps.
extension PatchbayClient {
    /// Returns the tools of an app, from the broker's cache while the app is unavailable.
    package func tools(of id: EndpointID) async throws -> ToolList {
        let request = OutgoingRequest(method: .GET, path: ["endpoints", id.text, "tools"])
        let response = try json(try await bytes(of: request, extraTimeout: .seconds(20)), of: request)
        guard let tools = response["tools"]?.array?.compactMap(\.object) else {
            throw invalidResponse(to: request, "it has no tools")
        }
        return ToolList(
            tools: tools,
            isStale: response["stale"]?.bool ?? false,
            hasChanged: response["changed"]?.bool ?? false,
            limit: response["limit"]?.string,
            reason: response["reason"]?.string,
            hint: response["hint"]?.string
        )
    }

    /// Calls a tool of an app.
    ///
    /// - Parameters:
    ///   - tool: Name of the tool.
    ///   - id: ID of the app's endpoint.
    ///   - arguments: Arguments that match the tool's schema.
    ///   - wait: Maximum time in seconds to wait for an app that is unavailable.
    ///   - timeout: Maximum duration of the call in seconds.
    ///   - maxPixels: Maximum edge length of an image in the result; 0 for links to the originals.
    ///   - imageFormat: Format of the images in the result, `png` or `jpeg`; nil for any.
    /// - Returns: A `CallToolResult`, which may report a failure of the tool.
    /// - Throws: `ClientError`.
    package func call(
        _ tool: String,
        of id: EndpointID,
        arguments: JSONObject,
        wait: Int? = nil,
        timeout: Int? = nil,
        maxPixels: Int? = nil,
        imageFormat: String? = nil
    ) async throws -> JSONObject {
        var body: JSONObject = ["tool": .string(tool), "arguments": .object(arguments)]
        body["waitSeconds"] = wait.map { .number(JSONNumber($0)) }
        body["timeoutSeconds"] = timeout.map { .number(JSONNumber($0)) }
        body["maxPixels"] = maxPixels.map { .number(JSONNumber($0)) }
        body["imageFormat"] = imageFormat.map { .string($0) }
        let request = OutgoingRequest(
            method: .POST,
            path: ["endpoints", id.text, "call"],
            body: JSON.object(body).bytes
        )
        // A tool may run for two minutes.
        let bytes = try await bytes(of: request, extraTimeout: .seconds((wait ?? 10) + 120))
        guard let result = try json(bytes, of: request)["result"]?.object else {
            throw invalidResponse(to: request, "it has no result")
        }
        return result
    }

    /// Returns the artifact that a result links to as `patchbay://artifact/SHA`.
    ///
    /// - Throws: `ClientError`.
    package func artifact(_ sha: String) async throws -> [UInt8] {
        try await bytes(of: OutgoingRequest(method: .GET, path: ["artifacts", sha]), limit: Self.artifactLimit)
    }

    /// Maximum size of an artifact in bytes; the broker stores no larger one.
    private static let artifactLimit = 256 << 20

    private func json(_ bytes: [UInt8], of request: OutgoingRequest) throws(ClientError) -> JSON {
        do throws(JSONError) { return try JSON(parsing: bytes) } catch {
            throw invalidResponse(to: request, error.description)
        }
    }

    private func invalidResponse(to request: OutgoingRequest, _ detail: String) -> ClientError {
        .invalidResponse(what: "the answer to \(request.name)", detail: detail)
    }
}
