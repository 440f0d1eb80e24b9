import FoundationEssentials
import Model
import Synchronization

@testable import patchbay

/// A scripted broker with a list of endpoints, leases and one session.
final class ListBroker: Sendable {
    struct Content: Sendable {
        var endpoints: [Endpoint] = []
        var leases: [Lease] = []
        var hasGrant = false
    }

    private let content: Mutex<Content>

    init(_ endpoints: [Endpoint], leases: [Lease] = [], hasGrant: Bool = false) {
        content = Mutex(Content(endpoints: endpoints, leases: leases, hasGrant: hasGrant))
    }

    func set(_ endpoints: [Endpoint]) { content.withLock { $0.endpoints = endpoints } }

    /// Responds to the API and to the handshake; `mcp` responds to other messages for an MCP server.
    func answer(_ request: String, _ mcp: (String) -> FakeMCPServer.Response) -> FakeMCPServer.Response {
        let content = content.withLock { $0 }
        if request.hasPrefix("GET /v1/endpoints") {
            return Self.document(EndpointList(revision: 1, endpoints: content.endpoints))
        }
        if request.hasPrefix("GET /v1/leases") { return Self.document(ListResponse(content.leases)) }
        if request.hasPrefix("GET /v1/grants/self") {
            let problem = Problem(.notFound, "you sent no token")
            return content.hasGrant ? Self.document(Self.grant) : Self.document(problem, status: "404 Not Found")
        }
        if request.contains(#""initialize""#) {
            return FakeMCPServer.json(
                #"{"jsonrpc":"2.0","id":0,"result":{"protocolVersion":"2025-06-18"}}"#,
                headers: "Mcp-Session-Id: s1\r\n"
            )
        }
        if request.hasPrefix("GET") { return .open(FakeMCPServer.events([])) }
        if request.contains(#""method":"notifications/"#) { return FakeMCPServer.json("", status: "202 Accepted") }
        return mcp(request)
    }

    static func document(_ value: some Encodable, status: String = "200 OK") -> FakeMCPServer.Response {
        let data = (try? JSONCoding.encoder().encode(value)) ?? Data()
        return FakeMCPServer.json(String(decoding: data, as: UTF8.self), status: status)
    }

    /// A lease of the client's own.
    static func lease(of endpoint: Endpoint) -> Lease {
        Lease(
            id: "l1",
            endpoint: endpoint.id,
            device: nil,
            holder: SanitizedText("agent"),
            isOwn: true,
            note: nil,
            seconds: 600,
            createdAt: SampleEndpoints.date,
            expiresAt: SampleEndpoints.date + 600,
            waiting: 0
        )
    }

    private static let grant = Grant(
        id: "g1",
        name: SanitizedText("agent"),
        permissions: Permissions([.registryRead, .endpointCall], on: .all),
        binding: .bearer,
        parent: nil,
        invite: nil,
        createdAt: SampleEndpoints.date,
        expiresAt: SampleEndpoints.date + 600,
        lastUsedAt: SampleEndpoints.date,
        idleSeconds: 600,
        endReason: nil
    )
}
