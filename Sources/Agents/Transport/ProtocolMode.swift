import Apps
import Model

/// The protocol rules for one request, selected per request.
enum ProtocolMode: Hashable, Sendable {
    /// MCP 2026-07-28: the request is self-contained.
    case stateless
    /// A session protocol, with the version that the handshake negotiated.
    case session(ProtocolVersion)

    /// The parameter of each method that 2026-07-28 requires in the header `Mcp-Name` too.
    private static let nameParameters = ["tools/call": "name", "prompts/get": "name", "resources/read": "uri"]

    /// Selects the mode of a request and validates the headers of a stateless one (MCP 2026-07-28, Streamable HTTP,
    /// server validation).
    ///
    /// - Parameters:
    ///   - request: The request.
    ///   - meta: The protocol members of its `_meta`.
    ///   - headers: Its HTTP headers.
    ///   - negotiated: The version of its session.
    /// - Throws: The error to respond with, with status 400.
    init(
        of request: RPCRequest,
        meta: RequestMeta,
        headers: MCPRequestHeaders,
        negotiated: ProtocolVersion?
    ) throws(RPCError) {
        let header = headers.protocolVersion.first
        if meta.protocolVersion != nil
            || (request.method != "initialize" && header.flatMap(ProtocolVersion.init)?.isStateless == true)
        {
            try Self.validateStateless(request, meta: meta, headers: headers)
            self = .stateless
        } else if request.method == "initialize" {
            self = .session(.latestWithHandshake)
        } else {
            self = .session(try Self.version(in: headers, negotiated: negotiated))
        }
    }

    /// Returns the version of a message without its own `_meta`: a notification, a stream, or a request of a session
    /// protocol.
    static func version(in headers: MCPRequestHeaders, negotiated: ProtocolVersion?) throws(RPCError) -> ProtocolVersion
    {
        // The header exists since 2025-06-18. A client without the header is treated as 2025-03-26 (MCP 2025-11-25,
        // transports).
        guard let header = headers.protocolVersion.first else { return negotiated ?? .v2025_03_26 }
        guard let version = ProtocolVersion(rawValue: header) else { throw .unsupportedProtocolVersion(header) }
        return version
    }

    /// Requires the `_meta` members and headers of 2026-07-28, and that they agree with each other and with the body.
    private static func validateStateless(
        _ request: RPCRequest,
        meta: RequestMeta,
        headers: MCPRequestHeaders
    ) throws(RPCError) {
        guard let version = meta.protocolVersion?.string, meta.capabilities?.object != nil else {
            throw .invalidParams(
                "_meta must have \(RequestMeta.protocolVersionKey), a string, and \(RequestMeta.capabilitiesKey), an object"
            )
        }
        try requireHeader("MCP-Protocol-Version", headers.protocolVersion, equals: version)
        try requireHeader("Mcp-Method", headers.method, equals: request.method)
        if let name = nameParameters[request.method].flatMap({ request.params?[$0]?.string }) {
            try requireHeader("Mcp-Name", headers.name.map { HeaderEncoding.decode($0) ?? "" }, equals: name)
        } else if headers.name.count > 1 {
            throw .headerMismatch("the header Mcp-Name is repeated")
        }
        guard ProtocolVersion(rawValue: version)?.isStateless == true else {
            throw .unsupportedProtocolVersion(version)
        }
    }

    private static func requireHeader(_ header: String, _ values: [String], equals expected: String) throws(RPCError) {
        guard let value = values.first else { throw .headerMismatch("the header \(header) is missing") }
        guard values.count == 1 else { throw .headerMismatch("the header \(header) is repeated") }
        guard value == expected else { throw .headerMismatch("the header \(header) contradicts the body") }
    }

    /// Returns the HTTP status of an error response.
    func status(of error: RPCError) -> Int {
        guard self == .stateless else { return 200 }
        return switch error.code {
        case -32_601: 404
        case -32_700, -32_600, -32_602, -32_020, -32_021, -32_022: 400
        default: 200
        }
    }
}
