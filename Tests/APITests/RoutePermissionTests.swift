import AccessControl
import FoundationEssentials
import Model
import Samples
import Testing

@testable import API

@Suite struct RoutePermissionTests {
    private func principal(
        _ scopes: Set<Scope>,
        _ binding: GrantBinding = .bearer,
        from source: RequestSource = .tcp(address: "127.0.0.1"),
        tools: ToolFilter = .all
    ) -> Principal {
        let grant = Grant.sample(
            "abcdefgh",
            name: "test",
            Permissions(scopes, on: .all, tools: tools),
            binding: binding
        )
        return Principal(.grant(grant), source: source, actor: .grant(grant.id), user: 1_000)
    }

    private let anonymous = Principal(.anonymous, source: .tcp(address: "::1"), actor: .anonymous, user: nil)
    private let localUser = Principal(.localUser, source: .unix(uid: 65_534), actor: .anonymous, user: 65_534)
    private let owner = Principal(.owner, source: .unix(uid: 0), actor: .anonymous, user: 0)

    private func isAuthorized(_ principal: Principal, _ permission: RoutePermission) -> Bool {
        (try? permission.authorize(principal)) != nil
    }

    @Test func `an anonymous client may use the public routes only`() {
        let open = RouteTable.all.filter { isAuthorized(anonymous, $0.permission) }.map(\.path)

        #expect(
            Set(open) == [
                "/", "/dashboard/{hash}/{name}", "/health", "/openapi.json", "/v1/invites/redeem",
                "/v1/dashboard/sessions", "/v1/endpoints/{id}/secret", "/v1/team/members",
            ],
            "the handlers of the last four check an invite, a code or a grant"
        )
        #expect(throws: AccessError.refused) { try RoutePermission.owner.authorize(anonymous) }
    }

    @Test(arguments: [GrantBinding.bearer, .user(0), .dashboard(0), .dashboard(1_000)])
    func `a remote client is never an owner, and never gets admin or secret_read`(binding: GrantBinding) {
        let scopes = Set(Scope.allCases)
        let remote = principal(scopes, binding, from: .remote(address: "192.168.1.7"))
        #expect(!remote.isOwner)
        for scope in scopes {
            let isLocalOnly = scope == .admin || scope == .secretRead
            #expect(remote.may(scope) == !isLocalOnly)
            #expect(isAuthorized(remote, .scope(scope)) == !isLocalOnly)
        }
        for route in RouteTable.all where [.owner, .localProcess].contains(route.permission) {
            #expect(!isAuthorized(remote, route.permission), "\(route.path)")
        }
        let impostor = Principal(.owner, source: .remote(address: "192.168.1.7"), actor: .anonymous, user: 0)
        #expect(!impostor.isOwner)
    }

    @Test func `a local user may also request access`() {
        let open = RouteTable.all.filter {
            isAuthorized(localUser, $0.permission) && !isAuthorized(anonymous, $0.permission)
        }.map(\.path)

        #expect(Set(open) == ["/v1/access-requests", "/v1/access-requests/poll"])
    }

    @Test func `a request for access on the socket of a grant is refused with the reason and the next step`() {
        let guest = principal([.registryRead], from: .socket(grant: "abcdefgh"))

        let error = #expect(throws: Problem.self) { try RoutePermission.localProcess.authorize(guest) }

        #expect(error?.detail == "this Unix socket is for one grant, and accepts no request for another one")
        #expect(error?.hint?.hasSuffix("patchbay pair --socket PATH") == true)
    }

    @Test func `an owner may use every route`() {
        #expect(RouteTable.all.allSatisfy { isAuthorized(owner, $0.permission) })
    }

    @Test(arguments: Scope.allCases) func `a scope permits its own routes only`(scope: Scope) {
        let principal = principal([scope])

        for case .scope(let wanted) in RouteTable.all.map(\.permission) {
            #expect(isAuthorized(principal, .scope(wanted)) == (wanted == scope))
        }
        #expect(!isAuthorized(principal, .owner))
    }

    @Test func `a grant that is limited to certain tools may use no route that bypasses the limit`() {
        let limited = principal(Set(Scope.allCases), .user(1_000), from: .unix(uid: 1_000), tools: .named(["tap"]))
        let bypasses: Set<Scope> = [.tunnelOpen, .shell, .secretRead, .admin]

        for route in RouteTable.all {
            guard case .scope(let scope) = route.permission else { continue }
            #expect(isAuthorized(limited, route.permission) == !bypasses.contains(scope), "\(route.path)")
        }
        #expect(!isAuthorized(limited, .owner))
        let error = #expect(throws: Problem.self) { try RoutePermission.scope(.tunnelOpen).authorize(limited) }
        #expect(
            error?.detail == "grant abcdefgh does not allow tunnel.open: tunnel.open would bypass the limit to "
                + "the tool tap, because it allows any call of an app"
        )
    }

    @Test func `admin is effective only on the Unix socket, for the bound user`() {
        #expect(isAuthorized(principal([.admin], .user(1_000), from: .unix(uid: 1_000)), .owner))
        #expect(!isAuthorized(principal([.admin], .bearer, from: .unix(uid: 1_000)), .owner))
        #expect(!isAuthorized(principal([.admin], .user(1_000), from: .unix(uid: 1_001)), .owner))
        #expect(!isAuthorized(principal([.admin], .user(1_000)), .owner))
        // A session of a browser becomes an owner only through `Principal.init(session:…)`.
        #expect(!isAuthorized(principal([.admin], .dashboard(1_000)), .owner))
        #expect(!isAuthorized(principal([.admin], .dashboard(1_000), from: .unix(uid: 1_000)), .owner))
    }

    @Test func `a tunnel to OpenAgents needs the scope shell, and other tunnels do not`() throws {
        func endpoint(_ kind: EndpointKind) throws -> Endpoint {
            Endpoint.sample("lab", kind: kind, app: "lab", name: "lab")
        }

        #expect(throws: Problem.self) { try principal([.tunnelOpen]).requireTunnelScopes(for: endpoint(.openagents)) }
        #expect(throws: Problem.self) { try principal([.shell]).requireTunnelScopes(for: endpoint(.openagents)) }
        try principal([.tunnelOpen, .shell]).requireTunnelScopes(for: endpoint(.openagents))
        try principal([.tunnelOpen]).requireTunnelScopes(for: endpoint(.mcp))
        try owner.requireTunnelScopes(for: endpoint(.openagents))
    }

    @Test func `a tunnel to a DevTools server needs the scope shell unless the server is on a phone`() throws {
        var server = Endpoint.sample("chrome", kind: .web, app: "chrome", name: "chrome")
        #expect(throws: Problem.self) { try principal([.tunnelOpen]).requireTunnelScopes(for: server) }
        try principal([.tunnelOpen, .shell]).requireTunnelScopes(for: server)

        let udid = try #require(UDID(androidSerial: "4711"))
        server.location.udid = udid
        server.routes = [EndpointRoute(.usb(USBRoute(udid: udid, port: 9_222)), approval: .approved)]
        try principal([.tunnelOpen]).requireTunnelScopes(for: server)

        let network = NetworkRoute(address: "127.0.0.1", port: 9_222)
        server.routes.append(EndpointRoute(.network(network), approval: .approved))
        #expect(throws: Problem.self) { try principal([.tunnelOpen]).requireTunnelScopes(for: server) }
    }
}
