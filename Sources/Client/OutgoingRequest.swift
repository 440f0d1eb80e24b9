import Model
package import NIOHTTP1

/// An HTTP request to a broker.
package struct OutgoingRequest: Sendable {
    package let method: HTTPMethod
    /// The path and the query, percent-encoded.
    package let target: String
    /// The headers, without those of the connection.
    package var headers: [(name: String, value: String)]
    /// The body; nil for a request without a body.
    package let body: [UInt8]?

    /// Creates a request from its parts as they are.
    package init(
        method: HTTPMethod,
        target: String,
        headers: [(name: String, value: String)],
        body: [UInt8]? = nil
    ) {
        (self.method, self.target, self.headers, self.body) = (method, target, headers, body)
    }

    /// Creates a request of the API.
    ///
    /// - Parameters:
    ///   - method: The method.
    ///   - root: The first segments of the path. MCP targets are not below `/v1`.
    ///   - path: Further segments, not yet percent-encoded.
    ///   - query: The query, not yet percent-encoded. Pairs without a value are left out.
    ///   - body: A JSON body; nil for a request without a body.
    ///   - accept: The accepted media types.
    package init(
        method: HTTPMethod,
        root: [String] = ["v1"],
        path: [String],
        query: [(name: String, value: String?)] = [],
        body: [UInt8]? = nil,
        accept: String = "application/json"
    ) {
        // Every character that is not unreserved is encoded (RFC 3986, section 2.3).
        let path = "/" + (root + path).map(\.urlEscaped).joined(separator: "/")
        let query = query.compactMap { name, value in value.map { "\(name)=\($0.urlEscaped)" } }
        self.init(
            method: method,
            target: query.isEmpty ? path : path + "?" + query.joined(separator: "&"),
            headers: [("User-Agent", "patchbay"), ("Accept", accept)]
                + (body == nil ? [] : [("Content-Type", "application/json")]),
            body: body
        )
    }

    /// The request's name in error messages, for example `GET /v1/status`.
    package var name: String { "\(method.rawValue) \(target)" }

    /// True if a second execution of the request changes nothing.
    package var isIdempotent: Bool { [.GET, .HEAD, .PUT, .DELETE].contains(method) }

    /// Returns the head for a connection to this host.
    package func head(host: String) -> HTTPRequestHead {
        var fields = HTTPHeaders([("Host", host)] + headers.map { ($0.name, $0.value) })
        if let body { fields.add(name: "Content-Length", value: "\(body.count)") }
        return HTTPRequestHead(version: .http1_1, method: method, uri: target, headers: fields)
    }
}
