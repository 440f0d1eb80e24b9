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
        let path = "/" + (root + path).map(Self.escaped).joined(separator: "/")
        guard !query.isEmpty else { return path }
        return path + "?" + query.map { "\($0.name)=\(Self.escaped($0.value))" }.joined(separator: "&")
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

    static func escaped(_ text: String) -> String {
        var escaped = ""
        for byte in text.utf8 {
            switch byte {
            case UInt8(ascii: "a")...UInt8(ascii: "z"), UInt8(ascii: "A")...UInt8(ascii: "Z"),
                UInt8(ascii: "0")...UInt8(ascii: "9"), UInt8(ascii: "-"), UInt8(ascii: "."), UInt8(ascii: "_"),
                UInt8(ascii: "~"):
                escaped.unicodeScalars.append(Unicode.Scalar(byte))
            default:
                let digits = String(byte, radix: 16, uppercase: true)
                escaped += digits.count == 1 ? "%0\(digits)" : "%\(digits)"
            }
        }
        return escaped
    }
}
