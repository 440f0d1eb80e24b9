package import Model

/// One HTTP request to an app.
///
/// Contains only the headers made here. No header of a client's request is forwarded.
package struct AppHTTPRequest: Sendable {
    package let method: String
    /// The path and the query.
    package let target: String
    /// The media types of the response. Without `text/event-stream`, the body is not read as events.
    package let accept: String
    /// The endpoint's secret, which is sent as a bearer token: one line of printable ASCII.
    package let secret: String?
    package let headers: [(name: String, value: String)]
    /// The body, which is sent as JSON.
    package let body: [UInt8]?

    package init(
        _ method: String,
        _ target: String,
        accept: String = "application/json",
        secret: String? = nil,
        headers: [(name: String, value: String)] = [],
        body: [UInt8]? = nil
    ) {
        self.method = method
        self.target = target
        self.accept = accept
        self.secret = secret
        self.headers = headers
        self.body = body
    }

    var acceptsEvents: Bool { accept.hasSuffix("text/event-stream") }

    /// Returns head and body in one buffer, with the dialled address and port as the host. Separate writes would cost
    /// 40 ms by Nagle's algorithm and delayed acknowledgement.
    package func bytes(host: String) -> [UInt8] {
        var head = "\(method) \(target) HTTP/1.1\r\nHost: \(host)\r\n"
        if body != nil { head += "Content-Type: application/json\r\n" }
        head += "Accept: \(accept)\r\nUser-Agent: patchbay/\(Version.text)\r\n"
        if let secret { head += "Authorization: Bearer \(secret)\r\n" }
        for header in headers { head += "\(header.name): \(header.value)\r\n" }
        if body != nil || method != "GET" { head += "Content-Length: \(body?.count ?? 0)\r\n" }
        return Array("\(head)\r\n".utf8) + (body ?? [])
    }
}

/// The whole response to a request.
package struct AppResponse: Hashable, Sendable {
    package let status: Int
    /// The value of `Content-Type`.
    package let contentType: String?
    package let body: [UInt8]

    var isSuccess: Bool { (200..<300).contains(status) }

    package var json: JSON? { try? RepairedJSON(body).json }

    /// The media type without parameters, in lower case.
    var mediaType: String? {
        contentType?.split(separator: ";").first.map { $0.lowercased().filter { !$0.isWhitespace } }
    }

    /// Returns the text at a pointer of the body, if the body is JSON.
    func text(at pointer: JSONPointer) -> String? { json.flatMap { pointer.value(in: $0) }?.string }
}

extension Route {
    /// The value of the header `Host` (RFC 9110, section 7.2): the dialled address and port without the interface, or a
    /// device's own loopback. An abstract socket has no port.
    ///
    /// Servers that guard against DNS rebinding reject host names and accept numeric addresses.
    package var hostHeader: String {
        switch self {
        case .network(let network) where network.address.contains(":"): "[\(network.address)]:\(network.port)"
        case .network(let network): "\(network.address):\(network.port)"
        case .usb(let usb): usb.socket.port.map { "127.0.0.1:\($0)" } ?? "127.0.0.1"
        }
    }
}
