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
