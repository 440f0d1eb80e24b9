import AccessControl
import Model

/// One HTTP request to an app.
///
/// Contains only the headers made here. No header of the client's request is forwarded.
struct UpstreamHTTPRequest: Sendable {
    let path: String
    /// The route, for the `Host` header.
    let route: Route
    let secret: EndpointSecret?
    /// The protocol headers: version, session, method and name.
    var headers: [(name: String, value: String)] = []
    /// Nil for a GET, which opens the stream of server messages.
    let message: JSON?
    /// Indicates whether it is the DELETE that ends a session.
    var isSessionDelete = false

    /// Head and body in one buffer. Separate writes would cost 40 ms by Nagle's algorithm and delayed acknowledgement.
    var bytes: [UInt8] {
        // The line feed makes a server with a line transport answer, which identifies it.
        let body = message.map { $0.bytes + [0x0A] } ?? []
        var head = "\(method) \(path) HTTP/1.1\r\nHost: \(Self.host(of: route))\r\n"
        if isSessionDelete {
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
        if isSessionDelete { return "DELETE" }
        return message == nil ? "GET" : "POST"
    }

    /// Returns the dialled address, or a device's own loopback. Servers that guard against DNS rebinding reject
    /// host names and accept numeric addresses.
    static func host(of route: Route) -> String {
        switch route {
        case .network(let network):
            network.address.contains(":")
                ? "[\(network.address)]:\(network.port)" : "\(network.address):\(network.port)"
        case .usb(let usb): "127.0.0.1:\(usb.port)"
        }
    }
}
