import Foundation
import Testing

/// The parts that may see endpoints of other hosts. All others use the local view of the registry: `localEndpoints`,
/// `localList`, `localEndpoint` and `localChanges`.
@Suite struct LocalEndpointTests {
    /// The files that use the full view, each with its reason.
    private static let readers: [String: String] = [
        "API/Policies/GrantTunnelService.swift": "a tunnel may lead to another host",
        "API/Policies/LeasePolicy.swift": "the other broker checks its leases",
        "API/Routes/ApprovalRoutes.swift": "routes of another host's endpoint are refused before",
        "API/Routes/EndpointRoutes.swift": "the list",
        "API/Routes/EventRoutes.swift": "the event stream",
        "API/Routes/LeaseRoutes.swift": "the leases of listed endpoints",
        "API/Routes/MCPRoutes.swift": "requests are passed to the other host",
        "API/Routes/ServerCardRoutes.swift": "the catalog",
        "API/Routes/StatusRoutes.swift": "the counts",
        "API/Routing/APIRequest.swift": "the endpoint of a path",
        "MCP/Broker/ChangeCoalescer.swift": "changes of resources",
        "MCP/Broker/EndpointDirectory.swift": "the list for agents",
        "MCP/Broker/Tools/EndpointWaitTool.swift": "changes of listed endpoints",
        "patchbayd/Team/TeamPlanner.swift": "streams to other hosts",
        "patchbayd/Wiring/DiscoverySources.swift": "the counts",
        "patchbayd/Wiring/EventForwarders.swift": "tunnels may lead to another host",
    ]

    @Test func `only parts that show or forward endpoints use those of other hosts`() throws {
        let found = try ProjectFile.swift(in: "Sources").filter { file in
            // `Sources/API/Team` passes requests to the other hosts.
            guard !["Registry", "API/Team"].contains(where: { file.path.hasPrefix("Sources/\($0)/") }) else {
                return false
            }
            return try file.text().contains(/registry\.(endpoints|list|changes)\b|registry\.endpoint\((?!seenAs)/)
        }

        #expect(Set(found.map { String($0.path.dropFirst("Sources/".count)) }).subtracting(Self.readers.keys) == [])
    }
}
