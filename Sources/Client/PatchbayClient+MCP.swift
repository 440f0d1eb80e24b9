package import JSON
package import Model
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

/// The apps' own tools.
extension PatchbayClient {
    /// What an app offers, from the broker's cache while the app is away.
    package func tools(of id: EndpointID) async throws -> ToolList {
        let call = OutgoingRequest(method: .GET, path: ["endpoints", id.text, "tools"])
        let answer = try json(try await bytes(of: call, extraPatience: .seconds(20)), of: call)
        guard let tools = answer["tools"]?.array?.compactMap(\.object) else { throw misfit(call, "it has no tools") }
        return ToolList(
            tools: tools,
            isStale: answer["stale"]?.bool ?? false,
            hasChanged: answer["changed"]?.bool ?? false,
            reason: answer["reason"]?.string,
            next: answer["next"]?.string
        )
    }

    /// Calls a tool of an app.
    ///
    /// - Parameters:
    ///   - tool: Its name.
    ///   - id: The app's.
    ///   - arguments: As its schema wants them.
    ///   - wait: For how many seconds an app is waited for that is away.
    ///   - timeout: How many seconds the call may take in all.
    ///   - maxPixels: The longest edge of an image in the result; 0 for links to the originals.
    /// - Returns: A `CallToolResult`, which may say that the tool failed.
    /// - Throws: `ClientError`.
    package func call(
        _ tool: String,
        of id: EndpointID,
        arguments: JSONObject,
        wait: Int? = nil,
        timeout: Int? = nil,
        maxPixels: Int? = nil
    ) async throws -> JSONObject {
        var body: JSONObject = ["tool": .string(tool), "arguments": .object(arguments)]
        body["wait_s"] = wait.map { .number(JSONNumber($0)) }
        body["timeout_s"] = timeout.map { .number(JSONNumber($0)) }
        body["max_px"] = maxPixels.map { .number(JSONNumber($0)) }
        let call = OutgoingRequest(method: .POST, path: ["endpoints", id.text, "call"], body: JSON.object(body).bytes)
        // A tool may take two minutes.
        let bytes = try await bytes(of: call, extraPatience: .seconds((wait ?? 10) + 120))
        guard let result = try json(bytes, of: call)["result"]?.object else { throw misfit(call, "it has no result") }
        return result
    }

    /// What a result links to as `patchbay://artifact/SHA`.
    ///
    /// - Throws: `ClientError`.
    package func artifact(_ sha: String) async throws -> [UInt8] {
        try await bytes(of: OutgoingRequest(method: .GET, path: ["artifacts", sha]), limit: Self.artifactLimit)
    }

    /// No larger one is kept.
    private static let artifactLimit = 256 << 20

    private func json(_ bytes: [UInt8], of call: OutgoingRequest) throws(ClientError) -> JSON {
        do throws(JSONError) { return try JSON(parsing: bytes) } catch { throw misfit(call, error.description) }
    }

    private func misfit(_ call: OutgoingRequest, _ detail: String) -> ClientError {
        .notUnderstood(what: "the answer to \(call.name)", detail: detail)
    }
}

/// What an app offers to agents.
package struct ToolList: Hashable, Sendable {
    /// As the app wrote them, sorted by name.
    package let tools: [JSONObject]
    /// From an earlier time: the app does not say it now.
    package let isStale: Bool
    /// Why not, and what to do about it.
    package let reason: String?
    package let next: String?
    /// Other than when somebody last looked at it.
    package let hasChanged: Bool

    package init(
        tools: [JSONObject],
        isStale: Bool = false,
        hasChanged: Bool = false,
        reason: String? = nil,
        next: String? = nil
    ) {
        self.tools = tools
        self.isStale = isStale
        self.hasChanged = hasChanged
        (self.reason, self.next) = (reason, next)
    }

    package func tool(named name: String) -> JSONObject? { tools.first { $0["name"] == .string(name) } }
}

/// One of the broker's MCP servers.
package enum MCPTarget: Hashable, Sendable {
    /// The broker's own, with its fixed tools.
    case broker
    /// An app's, at the address that stays.
    case endpoint(EndpointID)
    /// All apps together.
    case all

    /// The segments of its path.
    var path: [String] {
        switch self {
        case .broker: ["mcp"]
        case .endpoint(let id): ["e", id.text, "mcp"]
        case .all: ["all", "mcp"]
        }
    }
}

/// What is sent to an agent's door.
package struct MCPMessage: Hashable, Sendable {
    /// A header of MCP's own.
    package struct Header: Hashable, Sendable {
        package let name: String
        package let value: String

        package init(_ name: String, _ value: String) {
            self.name = name
            self.value = value
        }
    }

    /// A JSON-RPC message; nil asks for the stream of what the server says by itself.
    package let body: [UInt8]?
    package let headers: [Header]

    package init(body: [UInt8]?, headers: [Header] = []) {
        self.body = body
        self.headers = headers
    }
}

/// A part of what comes back from an agent's door.
package enum MCPStreamEvent: Hashable, Sendable {
    /// It was taken. Comes first; `Mcp-Session-Id` is in the answer to `initialize`.
    case opened(session: String?)
    /// A JSON-RPC message on one line; `isLast` where no other can follow it.
    case message([UInt8], isLast: Bool)
    /// It was not taken; the status, and what is said about it. Comes alone.
    case refused(status: Int, [UInt8])
}
