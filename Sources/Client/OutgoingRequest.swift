import NIOHTTP1

/// One request to the broker, before it is sent.
struct OutgoingRequest: Sendable {
    var method: HTTPMethod
    /// Segments that the path begins with; an agent's door is not below `/v1`.
    var root = ["v1"]
    /// Path segments below that, not yet escaped.
    var path: [String]
    var query: [(name: String, value: String)] = []
    /// JSON, or nil for a request without a body.
    var body: [UInt8]?
    var lastEventID: String?
    var accept = "application/json"
    /// What a request has beside the usual.
    var headers: [(name: String, value: String)] = []

    /// `GET /v1/status`: how errors name the call.
    var name: String { "\(method.rawValue) \(target)" }

    /// The request target with everything escaped that is not unreserved (RFC 3986, section 2.3).
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
