import Apps
import Model

/// The parts of an HTTP request that MCP uses.
package struct MCPHTTPRequest: Sendable {
    package enum Method: String, Sendable {
        case post = "POST"
        case get = "GET"
        case delete = "DELETE"
    }

    /// The maximum size of a body: 4 MiB.
    package static let bodyLimit = 4 * 1_024 * 1_024

    package let method: Method
    package let headers: MCPRequestHeaders
    package let body: [UInt8]
    /// Registers a closure to run when the client disconnects, immediately if it already has; nil if disconnects cannot
    /// be detected.
    package let onDisconnect: (@Sendable (@escaping @Sendable () -> Void) -> Void)?

    package init(
        _ method: Method,
        headers: MCPRequestHeaders,
        body: [UInt8] = [],
        onDisconnect: (@Sendable (@escaping @Sendable () -> Void) -> Void)? = nil
    ) {
        self.method = method
        self.headers = headers
        self.body = body
        self.onDisconnect = onDisconnect
    }
}

/// The header fields of MCP, each with all its values. In 2026-07-28 a repeated header is an error.
package struct MCPRequestHeaders: Hashable, Sendable {
    package let accept: [String]
    package let protocolVersion: [String]
    package let session: [String]
    package let method: [String]
    package let name: [String]
    /// `Last-Event-ID`: the last event that the client received on a broken stream.
    let lastEvent: [String]
    let trace: TraceContext?
    /// True if `patchbay mcp` created the request from a line of standard input. Its client has no headers of its own.
    let isFromStdio: Bool
    /// The `Mcp-Param-…` headers by name in lower case.
    let parameters: [String: [String]]

    /// Reads the headers of a request.
    ///
    /// - Parameters:
    ///   - values: Returns every value of the field of a name in any case.
    ///   - fields: All fields; those that begin with `Mcp-Param-` are used.
    package init(values: (String) -> [String], fields: some Sequence<(name: String, value: String)>) {
        accept = values("Accept")
        protocolVersion = values("MCP-Protocol-Version")
        session = values("Mcp-Session-Id")
        method = values("Mcp-Method")
        name = values("Mcp-Name")
        lastEvent = values("Last-Event-ID")
        trace = TraceContext(headers: values)
        isFromStdio = values("Patchbay-Transport") == ["stdio"]
        var parameters: [String: [String]] = [:]
        for field in fields {
            let name = field.name.lowercased()
            if name.hasPrefix("mcp-param-") { parameters[name, default: []].append(field.value) }
        }
        self.parameters = parameters
    }

    /// True also if the client sent no `Accept` header.
    var acceptsJSON: Bool {
        accept.isEmpty || mediaTypes.contains { ["application/json", "application/*", "*/*"].contains($0) }
    }

    /// True only if the client explicitly accepts an event stream.
    var acceptsEvents: Bool { mediaTypes.contains("text/event-stream") }

    private var mediaTypes: [String] {
        accept.flatMap { $0.split(separator: ",") }.map { $0.prefix { $0 != ";" }.filter { $0 != " " }.lowercased() }
    }
}

/// A complete HTTP response.
package struct MCPHTTPResponse: Hashable, Sendable {
    package struct Header: Hashable, Sendable {
        package let name: String
        package let value: String
    }

    package let status: Int
    package let headers: [Header]
    package let body: [UInt8]

    /// Creates a response without a body.
    init(_ status: Int, headers: [Header] = []) {
        self.status = status
        self.headers = headers
        body = []
    }

    init(_ status: Int = 200, json: JSON, headers: [Header] = []) {
        self.status = status
        self.headers = [Header(name: "Content-Type", value: "application/json")] + headers
        body = json.bytes
    }

    /// Creates an event stream that ends immediately.
    init(events: [UInt8], headers: [Header] = []) {
        status = 200
        self.headers = Self.events + headers
        body = events
    }

    /// Returns the response as an event stream for a client that accepts nothing else. Errors stay JSON: the client reads
    /// their status (modelcontextprotocol/python-sdk#2349).
    func acceptable(to requestHeaders: MCPRequestHeaders) -> MCPHTTPResponse {
        guard status == 200, !requestHeaders.acceptsJSON else { return self }
        let others = headers.filter { $0.name != "Content-Type" }
        return MCPHTTPResponse(events: SSEEncoder.event("message", data: body), headers: others)
    }

    init(_ status: Int, _ error: RPCError, to id: RPCID? = nil) {
        self.init(status, json: error.response(to: id))
    }

    static let accepted = MCPHTTPResponse(202)

    /// The headers of an event stream. `X-Accel-Buffering` keeps nginx and similar proxies from buffering events.
    ///
    /// The HTTP server adds `Cache-Control` to every response.
    static let events = [
        Header(name: "Content-Type", value: "text/event-stream"),
        Header(name: "X-Accel-Buffering", value: "no"),
    ]
}

/// Writes the response to a client: one complete response, or a head followed by events.
///
/// It is used by one task. A thrown error means that the client has disconnected.
package protocol MCPResponseBodyWriter: ~Copyable {
    mutating func write(_ response: MCPHTTPResponse) async throws
    /// Sends a head with status 200. Only `send` and `end` may follow.
    mutating func begin(_ headers: [MCPHTTPResponse.Header]) async throws
    mutating func send(_ bytes: [UInt8]) async throws
    mutating func end() async throws
}
