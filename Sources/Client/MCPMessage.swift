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
