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

    /// Returns the HTTP request. `secret` is the endpoint's secret, which only some requests carry.
    package func httpRequest(secret: String? = nil, trace: TraceContext? = nil) -> AppHTTPRequest {
        AppHTTPRequest(
            method,
            target,
            accept: "*/*",
            secret: usesSecret ? secret : nil,
            headers: (sessionHeader.map { [($0.name, $0.value)] } ?? []) + (trace?.headers ?? []),
            body: body
        )
    }
}

/// Method and path only: the body and the headers may contain a token or a session.
extension ProfileRequest: CustomStringConvertible, CustomDebugStringConvertible, CustomReflectable {
    package var description: String { "\(method) \(target)" }
    package var debugDescription: String { description }
    package var customMirror: Mirror { Mirror(self, children: []) }
}
