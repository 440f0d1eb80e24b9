import JSON

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
