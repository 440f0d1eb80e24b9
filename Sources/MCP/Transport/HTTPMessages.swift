import JSON

/// One HTTP request at an MCP address, as far as MCP is concerned.
package struct MCPHTTPRequest: Sendable {
    package enum Method: String, Sendable {
        case post = "POST"
        case get = "GET"
        case delete = "DELETE"
    }

    /// What the most that a body may have is, in bytes.
    package static let bodyLimit = 4 * 1_024 * 1_024

    package let method: Method
    package let headers: MCPRequestHeaders
    package let body: [UInt8]
    /// Takes what is to be done when the caller has gone, at once where it has; nil where nobody can tell.
    package let onDeparture: (@Sendable (@escaping @Sendable () -> Void) -> Void)?

    package init(
        _ method: Method,
        headers: MCPRequestHeaders,
        body: [UInt8] = [],
        onDeparture: (@Sendable (@escaping @Sendable () -> Void) -> Void)? = nil
    ) {
        self.method = method
        self.headers = headers
        self.body = body
        self.onDeparture = onDeparture
    }
}

/// The header fields that MCP knows, each with every value it came with: two of one kind are an error in 2026-07-28.
package struct MCPRequestHeaders: Hashable, Sendable {
    package let accept: [String]
    package let revision: [String]
    package let session: [String]
    package let method: [String]
    package let name: [String]
    /// Which event a client had last on a stream that broke.
    let lastEvent: [String]
    /// It was a line of standard input before `patchbay mcp` made a request of it: its client knows of no headers.
    let isFromLines: Bool
    /// What a tool wants to have beside its arguments, by the field's name in lower case.
    let parameters: [String: [String]]

    /// - Parameters:
    ///   - values: Every value of the field of that name, in any case.
    ///   - fields: Every field, of which those that begin with `Mcp-Param-` are taken.
    package init(values: (String) -> [String], fields: some Sequence<(name: String, value: String)>) {
        accept = values("Accept")
        revision = values("MCP-Protocol-Version")
        session = values("Mcp-Session-Id")
        method = values("Mcp-Method")
        name = values("Mcp-Name")
        lastEvent = values("Last-Event-ID")
        isFromLines = values("Patchbay-Transport") == ["stdio"]
        var parameters: [String: [String]] = [:]
        for field in fields {
            let name = field.name.lowercased()
            if name.hasPrefix("mcp-param-") { parameters[name, default: []].append(field.value) }
        }
        self.parameters = parameters
    }

    /// A caller that says nothing takes what there is.
    var takesJSON: Bool {
        accept.isEmpty || media.contains { ["application/json", "application/*", "*/*"].contains($0) }
    }

    /// Only one that says so can be expected to read events.
    var takesEvents: Bool { media.contains("text/event-stream") }

    private var media: [String] {
        accept.flatMap { $0.split(separator: ",") }.map { $0.prefix { $0 != ";" }.filter { $0 != " " }.lowercased() }
    }
}

/// A whole answer over HTTP.
package struct MCPHTTPResponse: Hashable, Sendable {
    package struct Header: Hashable, Sendable {
        package let name: String
        package let value: String
    }

    package let status: Int
    package let headers: [Header]
    package let body: [UInt8]

    /// With no body: taken, gone, or not something this address does.
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

    /// A stream of events that is over at once.
    init(events: [UInt8]) {
        status = 200
        headers = Self.events
        body = events
    }

    init(_ status: Int, _ error: RPCError, to id: RPCID? = nil) {
        self.init(status, json: error.answer(to: id))
    }

    static let accepted = MCPHTTPResponse(202)

    /// The head of an answer that is a stream of events. The second keeps nginx and its like from holding events back; that
    /// nothing is to be kept, the HTTP door says of every answer.
    static let events = [
        Header(name: "Content-Type", value: "text/event-stream"),
        Header(name: "X-Accel-Buffering", value: "no"),
    ]
}

/// The way back to the caller: one whole answer, or a head and then events until the end.
///
/// It is used by one task. What it throws means that the caller is gone.
package protocol MCPResponseBodyWriter: ~Copyable {
    mutating func write(_ reply: MCPHTTPResponse) async throws
    /// Sends a head with status 200; then come only `send` and `end`.
    mutating func begin(_ headers: [MCPHTTPResponse.Header]) async throws
    mutating func send(_ bytes: [UInt8]) async throws
    mutating func end() async throws
}
