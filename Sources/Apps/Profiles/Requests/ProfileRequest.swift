package import Model

/// One HTTP request to the endpoint of a profile. The type has no address: the transport has dialled the endpoint.
package struct ProfileRequest: Hashable, Sendable {
    package let method: String
    /// The path and the query.
    package let target: String
    package let body: [UInt8]?
    package let timeout: Duration
    /// Indicates whether the endpoint's own secret is sent as a bearer token.
    package var usesSecret = false
    /// The header of the session, if the profile sends one.
    var sessionHeader: Header?

    struct Header: Hashable {
        let name: String
        let value: String
    }

    init(method: String, target: String, body: [UInt8]?, timeout: Duration) {
        self.method = method
        self.target = target
        self.body = body
        self.timeout = timeout
    }

    /// Returns head and body in one buffer, because separate writes would wait for an acknowledgement.
    ///
    /// `host` is the dialled address and port, and `secret` the endpoint's secret: one line of printable ASCII.
    package func bytes(host: String, secret: String?) -> [UInt8] {
        var head = "\(method) \(target) HTTP/1.1\r\nHost: \(host)\r\n"
        if body != nil { head += "Content-Type: application/json\r\n" }
        head += "Accept: */*\r\nUser-Agent: patchbay/\(Version.text)\r\n"
        if usesSecret, let secret { head += "Authorization: Bearer \(secret)\r\n" }
        if let sessionHeader { head += "\(sessionHeader.name): \(sessionHeader.value)\r\n" }
        if body != nil || method != "GET" { head += "Content-Length: \(body?.count ?? 0)\r\n" }
        return Array("\(head)\r\n".utf8) + (body ?? [])
    }
}

/// Method and path only: the body and the headers may contain a token or a session.
extension ProfileRequest: CustomStringConvertible, CustomDebugStringConvertible, CustomReflectable {
    package var description: String { "\(method) \(target)" }
    package var debugDescription: String { description }
    package var customMirror: Mirror { Mirror(self, children: []) }
}

/// The response to a `ProfileRequest`.
package struct ProfileResponse: Hashable, Sendable {
    package let status: Int
    /// The value of `Content-Type`.
    package let contentType: String?
    package let body: [UInt8]

    package init(status: Int, contentType: String?, body: [UInt8]) {
        self.status = status
        self.contentType = contentType
        self.body = body
    }

    var isSuccess: Bool { (200..<300).contains(status) }

    package var json: JSON? { try? RepairedJSON(body).json }

    /// The media type without parameters, in lower case.
    var mediaType: String? {
        contentType?.split(separator: ";").first.map { $0.lowercased().filter { !$0.isWhitespace } }
    }

    /// Returns the text at a pointer of the body, if the body is JSON.
    func text(at pointer: JSONPointer) -> String? { json.flatMap { pointer.value(in: $0) }?.string }
}
