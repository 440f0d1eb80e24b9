import JSON

/// A revision of the Model Context Protocol, by the date that is its name.
package enum ProtocolVersion: String, Sendable, CaseIterable, Comparable {
    case november2024 = "2024-11-05"
    case march2025 = "2025-03-26"
    case june2025 = "2025-06-18"
    case november2025 = "2025-11-25"
    case july2026 = "2026-07-28"

    /// From 2026-07-28 on there is no handshake and no session: each request says everything.
    package var isStateless: Bool { self >= .july2026 }

    /// What a client is offered that asks for one unknown to us, or for one without a handshake.
    package static let latestWithHandshake = november2025

    package static func < (left: Self, right: Self) -> Bool { left.rawValue < right.rawValue }
}

/// The rules by which one request is answered, chosen anew for each.
enum ProtocolMode: Hashable, Sendable {
    /// 2026-07-28: the request says everything.
    case stateless
    /// After a handshake, which agreed on this revision.
    case handshake(ProtocolVersion)

    /// Where a value stands in the parameters that 2026-07-28 wants in the header Mcp-Name too.
    private static let named = ["tools/call": "name", "prompts/get": "name", "resources/read": "uri"]

    /// Looks at a request as 2026-07-28 (Streamable HTTP, server validation) wants it, where it is one of that revision.
    /// `agreed` is the revision of its session. What is thrown is answered with status 400.
    init(
        of request: RPCRequest,
        _ meta: RequestMeta,
        _ headers: MCPRequestHeaders,
        agreed: ProtocolVersion?
    ) throws(RPCError) {
        let said = headers.revision.first
        if meta.revision != nil
            || (request.method != "initialize" && said.flatMap(ProtocolVersion.init)?.isStateless == true)
        {
            try Self.checkStateless(request, meta, headers)
            self = .stateless
        } else if request.method == "initialize" {
            self = .handshake(.latestWithHandshake)
        } else {
            self = .handshake(try Self.revision(headers, agreed: agreed))
        }
    }

    /// The revision of what has no `_meta` of its own: notifications, streams, and every request of the eras before.
    static func revision(_ headers: MCPRequestHeaders, agreed: ProtocolVersion?) throws(RPCError) -> ProtocolVersion {
        // The header came with 2025-06-18; who sends none is taken for the revision before (2025-11-25, transports).
        guard let said = headers.revision.first else { return agreed ?? .march2025 }
        guard let revision = ProtocolVersion(rawValue: said) else { throw .revision(said) }
        return revision
    }

    private static func checkStateless(
        _ request: RPCRequest,
        _ meta: RequestMeta,
        _ headers: MCPRequestHeaders
    ) throws(RPCError) {
        guard let revision = meta.revision?.string, meta.capabilities?.object != nil else {
            throw .invalidParams(
                "_meta must have \(RequestMeta.revisionName), a text, and \(RequestMeta.capabilitiesName), an object"
            )
        }
        try check("MCP-Protocol-Version", headers.revision, is: revision)
        try check("Mcp-Method", headers.method, is: request.method)
        if let name = named[request.method].flatMap({ request.params?[$0]?.string }) {
            try check("Mcp-Name", headers.name.map { HeaderEncoding.decode($0) ?? "" }, is: name)
        } else if headers.name.count > 1 {
            throw .mismatch("the header Mcp-Name comes twice")
        }
        guard ProtocolVersion(rawValue: revision)?.isStateless == true else { throw .revision(revision) }
    }

    private static func check(_ header: String, _ values: [String], is expected: String) throws(RPCError) {
        guard let value = values.first else { throw .mismatch("the header \(header) is missing") }
        guard values.count == 1 else { throw .mismatch("the header \(header) comes twice") }
        guard value == expected else { throw .mismatch("the header \(header) is not what the body says") }
    }

    /// The status of an answer that is an error.
    func status(of error: RPCError) -> Int {
        guard self == .stateless else { return 200 }
        return switch error.code {
        case -32_601: 404
        case -32_700, -32_600, -32_602, -32_020, -32_021, -32_022: 400
        default: 200
        }
    }
}
