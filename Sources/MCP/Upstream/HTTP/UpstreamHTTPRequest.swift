import AccessControl
import JSON
import Model

/// One HTTP request to an app.
///
/// It has the headers that are made here and no other: nothing of what a client sent us can get through by being forgotten.
struct UpstreamHTTPRequest: Sendable {
    let path: String
    /// Where it goes, for the `Host` header.
    let route: Route
    let secret: EndpointSecret?
    /// What belongs to the era: revision, session, method, name.
    var headers: [(name: String, value: String)] = []
    /// Nil for a GET, which opens the stream on which an app tells of changes.
    let message: JSON?
    /// Whether it is the DELETE that ends a session.
    var isFarewell = false

    /// Head and body in one piece. In two, Nagle's algorithm and a delayed acknowledgement would cost 40 ms between them.
    var bytes: [UInt8] {
        // A server that takes lines instead answers to this one, and is known by it.
        let body = message.map { $0.bytes + [0x0A] } ?? []
        var head = "\(method) \(path) HTTP/1.1\r\nHost: \(Self.host(of: route))\r\n"
        if isFarewell {
            head += "Accept: application/json\r\n"
        } else if message == nil {
            head += "Accept: text/event-stream\r\n"
        } else {
            head += "Content-Type: application/json\r\nAccept: application/json, text/event-stream\r\n"
        }
        head += "User-Agent: patchbay/\(Version.text)\r\n"
        if let secret { head += "Authorization: Bearer \(secret.reveal())\r\n" }
        for header in headers { head += "\(header.name): \(header.value)\r\n" }
        if message != nil { head += "Content-Length: \(body.count)\r\n" }
        return Array("\(head)\r\n".utf8) + body
    }

    private var method: String {
        if isFarewell { return "DELETE" }
        return message == nil ? "GET" : "POST"
    }

    /// The address that is dialled, and a phone's own loopback: a name is for servers that guard against DNS rebinding, and
    /// to these a numeric address is none.
    private static func host(of route: Route) -> String {
        switch route {
        case .lan(let lan):
            lan.address.contains(":") ? "[\(lan.address)]:\(lan.port)" : "\(lan.address):\(lan.port)"
        case .usb(let usb): "127.0.0.1:\(usb.port)"
        }
    }
}
