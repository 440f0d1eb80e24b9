import Model
import NIOHTTP1

/// An HTTP request to the broker.
struct OutgoingRequest: Sendable {
    var method: HTTPMethod
    /// First segments of the path. MCP targets are not below `/v1`.
    var root = ["v1"]
    /// Further path segments, not yet percent-encoded.
    var path: [String]
    var query: [(name: String, value: String)] = []
    /// A JSON body; nil for a request without a body.
    var body: [UInt8]?
    var lastEventID: String?
    var accept = "application/json"
    /// Additional headers.
    var headers: [(name: String, value: String)] = []

    /// The request's name in error messages, for example `GET /v1/status`.
    var name: String { "\(method.rawValue) \(target)" }

    /// The request target; percent-encodes every character that is not unreserved (RFC 3986, section 2.3).
    var target: String {
        let path = "/" + (root + path).map(\.urlEscaped).joined(separator: "/")
        guard !query.isEmpty else { return path }
        return path + "?" + query.map { "\($0.name)=\($0.value.urlEscaped)" }.joined(separator: "&")
    }

    func head(host: String) -> HTTPRequestHead {
        var headers = HTTPHeaders([
            ("Host", host), ("User-Agent", "patchbay"), ("Accept", accept), ("Connection", "close"),
        ])
        if let body {
            headers.add(name: "Content-Type", value: "application/json")
            headers.add(name: "Content-Length", value: "\(body.count)")
        }
        if let lastEventID { headers.add(name: "Last-Event-ID", value: lastEventID) }
        headers.add(contentsOf: self.headers.map { ($0.name, $0.value) })
        return HTTPRequestHead(version: .http1_1, method: method, uri: target, headers: headers)
    }
}
