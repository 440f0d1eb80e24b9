import AccessControl
import Glibc
import HTTPTypes
import Hummingbird
import Model
import NIOCore

/// The whole API on one screen. The router and `openapi.json` are both made from it, so neither can say more than the other;
/// and each route says who may call it, so that none can be forgotten.
enum RouteTable {
    typealias Query = APIRoute.Query

    static let all = things + access + agents

    private static let things: [APIRoute] = [
        APIRoute(
            .get,
            "/v1/status",
            .scope(.registryRead),
            "How the broker is",
            gives: "BrokerStatus",
            StatusRoutes.show
        ),

        APIRoute(
            .get,
            "/v1/endpoints",
            .scope(.registryRead),
            "Every endpoint that the caller may see",
            query: [
                Query("since", .integer, "wait for something newer than this revision"),
                Query("wait", .integer, "seconds to wait, 300 at most"), Query("state", .string, "only in this state"),
                Query("app", .string, "only of this app"),
            ],
            gives: "EndpointList",
            EndpointRoutes.list
        ),
        APIRoute(
            .post,
            "/v1/endpoints",
            .owner,
            "Add a static endpoint",
            takes: "StaticEndpoint",
            gives: "Endpoint",
            EndpointRoutes.add
        ),
        APIRoute(
            .get,
            "/v1/endpoints/{id}",
            .scope(.registryRead),
            "One endpoint",
            gives: "Endpoint",
            EndpointRoutes.show
        ),
        APIRoute(
            .delete,
            "/v1/endpoints/{id}",
            .owner,
            "Forget an offline or static endpoint",
            EndpointRoutes.forget
        ),
        APIRoute(
            .post,
            "/v1/endpoints/{id}/probe",
            .scope(.endpointCall),
            "Ask an endpoint now whether it answers",
            gives: "Endpoint",
            EndpointRoutes.probe
        ),
        APIRoute(
            .post,
            "/v1/endpoints/{id}/approve",
            .owner,
            "Approve one network address of an endpoint",
            takes: "ApprovalSpec",
            gives: "Endpoint",
            creates: false,
            ApprovalRoutes.approve
        ),
        APIRoute(
            .delete,
            "/v1/endpoints/{id}/approve",
            .owner,
            "Revoke the approval of an endpoint, and forget its token",
            ApprovalRoutes.withdraw
        ),
        APIRoute(
            .put,
            "/v1/endpoints/{id}/secret",
            .owner,
            "Give the broker an app's own token",
            takes: "EndpointSecretSpec",
            ApprovalRoutes.setSecret
        ),
        APIRoute(
            .post,
            "/v1/endpoints/{id}/secret",
            .anyone,
            "The same, by the app: with a grant, or with an invite inside",
            takes: "EndpointSecretSpec",
            ApprovalRoutes.postSecret
        ),
        APIRoute(
            .delete,
            "/v1/endpoints/{id}/secret",
            .owner,
            "Forget an app's token",
            gives: "DeleteResponse",
            ApprovalRoutes.forgetSecret
        ),
        APIRoute(
            .get,
            "/v1/approvals",
            .owner,
            "Every approved network address",
            gives: "ApprovalList",
            ApprovalRoutes.list
        ),

        APIRoute(
            .get,
            "/v1/devices",
            .scope(.registryRead),
            "Every phone that is attached",
            gives: "DeviceList",
            DeviceRoutes.list
        ),

        APIRoute(
            .get,
            "/v1/tunnels",
            .scope(.tunnelOpen),
            "Every tunnel of the caller's",
            gives: "TunnelList",
            TunnelRoutes.list
        ),
        APIRoute(
            .post,
            "/v1/tunnels",
            .scope(.tunnelOpen),
            "Open a tunnel",
            takes: "TunnelSpec",
            gives: "Tunnel",
            TunnelRoutes.open
        ),
        APIRoute(
            .post,
            "/v1/tunnels/all",
            .scope(.tunnelOpen),
            "Open tunnels, all of them or none",
            takes: "TunnelSpecs",
            gives: "TunnelList",
            TunnelRoutes.openAll
        ),
        APIRoute(
            .delete,
            "/v1/tunnels",
            .scope(.tunnelOpen),
            "Remove every tunnel of the caller's",
            gives: "DeleteResponse",
            TunnelRoutes.removeAll
        ),
        APIRoute(
            .post,
            "/v1/tunnels/held",
            .scope(.tunnelOpen),
            "Open tunnels that live as long as this request",
            takes: "TunnelSpecs",
            gives: "events",
            TunnelRoutes.hold
        ),
        APIRoute(.get, "/v1/tunnels/{id}", .scope(.tunnelOpen), "One tunnel", gives: "Tunnel", TunnelRoutes.show),
        APIRoute(.delete, "/v1/tunnels/{id}", .scope(.tunnelOpen), "Remove a tunnel", TunnelRoutes.remove),

        APIRoute(
            .get,
            "/v1/advertisements",
            .owner,
            "Every advertisement",
            gives: "AdvertisementList",
            AdvertisementRoutes.list
        ),
        APIRoute(
            .post,
            "/v1/advertisements",
            .owner,
            "Advertise a service",
            takes: "AdvertisementSpec",
            gives: "Advertisement",
            AdvertisementRoutes.advertise
        ),
        APIRoute(
            .post,
            "/v1/advertisements/held",
            .owner,
            "Advertise a service as long as this request lives",
            takes: "AdvertisementSpec",
            gives: "events",
            AdvertisementRoutes.hold
        ),
        APIRoute(
            .patch,
            "/v1/advertisements/{id}",
            .owner,
            "Change the TXT record of an advertisement",
            takes: "AdvertisementUpdate",
            gives: "Advertisement",
            AdvertisementRoutes.update
        ),
        APIRoute(
            .delete,
            "/v1/advertisements/{id}",
            .owner,
            "Withdraw an advertisement",
            AdvertisementRoutes.withdraw
        ),

        APIRoute(
            .get,
            "/v1/events",
            .scope(.registryRead),
            "Every change as it happens",
            gives: "events",
            EventRoutes.follow
        ),
        APIRoute(.get, "/health", .anyone, "Whether the broker answers", gives: "Health", StatusRoutes.health),
        APIRoute(.get, "/openapi.json", .anyone, "This API, described", gives: "OpenAPI", StatusRoutes.openAPI),
    ]

    /// A responder for all of it, with every error said as RFC 9457 wants it.
    static func responder(for broker: APIServices) -> some HTTPResponder<APIRequestContext> {
        let router = Router(context: APIRequestContext.self)
        router.add(middleware: ProblemMiddleware())
        for route in all {
            router.on(RouterPath(route.path), method: route.method) { request, context in
                let call = APIRequest(
                    request: request,
                    parameters: context.parameters,
                    visitor: context.visitor,
                    channel: context.channel,
                    broker: broker,
                    aftermath: context.aftermath,
                    late: context.late,
                    departures: context.departures
                )
                // The router takes `/v1/grants/` for `/v1/grants`: an id that is empty would mean everything.
                if route.path.hasPrefix("/v1/"), request.uri.path.hasSuffix("/") {
                    throw Problem(.notFound, "there is nothing at \(request.uri.path)", next: "leave the last / away")
                }
                try await admit(call, to: route, context.delivery)
                return try await route.handler(call)
            }
        }
        return router.buildResponder()
    }

    /// Lets a call in or throws; what is answered under a grant is cut when the grant ends.
    private static func admit(_ call: APIRequest, to route: APIRoute, _ delivery: PendingResponse) async throws {
        let (visitor, pairing) = (call.visitor, call.broker.pairing)
        do { try route.access.check(visitor) } catch {
            if case .user = visitor.standing {
                try await pairing.note(
                    refusal: "\(route.method) \(route.path)",
                    of: visitor.caller,
                    from: visitor.origin
                )
            }
            throw error
        }
        guard let grant = visitor.grant, !route.outlivesGrant else { return }
        let use = try pairing.open(under: grant.id) { [channel = call.channel, delivery] in
            await cut(channel, before: delivery)
        }
        call.aftermath.add { pairing.close(use) }
    }

    /// Ends a connection now: of what the kernel has not sent yet, nothing is sent any more.
    ///
    /// Not where the answer is out already, and its use only not yet put away: the connection may be at another request, of
    /// somebody else. That is asked on the connection's loop, where no turn comes between the last byte and the word of it.
    private static func cut(_ channel: any Channel, before delivery: PendingResponse) async {
        if (try? await channel.eventLoop.submit { delivery.isDone }.get()) == true { return }
        if let socket = channel as? any SocketOptionProvider {
            try? await socket.setSoLinger(linger(l_onoff: 1, l_linger: 0)).get()
        }
        channel.close(promise: nil)
        try? await channel.closeFuture.get()
    }
}

/// Who may come in, for how long, and what they did: the second half of the table.
extension RouteTable {
    static let access: [APIRoute] = [
        APIRoute(
            .get,
            "/v1/invites",
            .scope(.inviteCreate),
            "Every invite, without its secret",
            gives: "InviteList",
            InviteRoutes.list
        ),
        APIRoute(
            .post,
            "/v1/invites",
            .scope(.inviteCreate),
            "Make a one-time token",
            takes: "InviteSpec",
            gives: "IssuedInvite",
            InviteRoutes.create
        ),
        APIRoute(
            .post,
            "/v1/invites/redeem",
            .anyone,
            "Spend a one-time token on a grant",
            takes: "RedemptionSpec",
            gives: "IssuedGrant",
            InviteRoutes.redeem
        ),
        APIRoute(
            .delete,
            "/v1/invites/{id}",
            .scope(.inviteCreate),
            "End an invite",
            gives: "RevocationResult",
            outlivesGrant: true,
            InviteRoutes.revoke
        ),

        APIRoute(
            .get,
            "/v1/grants",
            .holder,
            "The caller's grant and those under it; every one for an owner",
            gives: "GrantList",
            GrantRoutes.list
        ),
        APIRoute(
            .delete,
            "/v1/grants",
            .owner,
            "End every grant and every open invite",
            gives: "RevocationResult",
            outlivesGrant: true,
            GrantRoutes.revokeAll
        ),
        APIRoute(
            .get,
            "/v1/grants/{id}",
            .holder,
            "One grant; self is the caller's own",
            gives: "Grant",
            GrantRoutes.show
        ),
        APIRoute(
            .delete,
            "/v1/grants/{id}",
            .holder,
            "End a grant; when it is answered, everything of it is cut",
            gives: "RevocationResult",
            outlivesGrant: true,
            GrantRoutes.revoke
        ),
        APIRoute(
            .post,
            "/v1/grants/{id}/rotate",
            .holder,
            "Replace the secret of the caller's own grant",
            takes: "RotationSpec",
            gives: "IssuedGrant",
            GrantRoutes.rotate
        ),
        APIRoute(
            .post,
            "/v1/grants/{id}/delegate",
            .holder,
            "Give a part of the caller's grant to somebody else",
            takes: "DelegationSpec",
            gives: "IssuedGrant",
            GrantRoutes.delegate
        ),

        APIRoute(
            .get,
            "/v1/requests",
            .owner,
            "Everybody who waits for a yes",
            gives: "AccessRequestList",
            AccessRequestRoutes.list
        ),
        APIRoute(
            .post,
            "/v1/requests",
            .local,
            "Ask for access",
            takes: "AccessRequestSpec",
            gives: "AccessRequestCreated",
            AccessRequestRoutes.ask
        ),
        APIRoute(
            .post,
            "/v1/requests/poll",
            .local,
            "Ask how that stands",
            takes: "AccessRequestPoll",
            gives: "AccessRequestStatus",
            creates: false,
            AccessRequestRoutes.poll
        ),
        APIRoute(
            .post,
            "/v1/requests/reopen",
            .owner,
            "Take requests again after too many wrong codes",
            AccessRequestRoutes.reopen
        ),
        APIRoute(
            .post,
            "/v1/requests/{code}/approve",
            .owner,
            "Say yes to who shows this code",
            gives: "AccessRequest",
            AccessRequestRoutes.approve
        ),
        APIRoute(
            .post,
            "/v1/requests/{code}/deny",
            .owner,
            "Say no to who shows this code",
            gives: "AccessRequest",
            AccessRequestRoutes.deny
        ),

        APIRoute(
            .get,
            "/v1/audit",
            .owner,
            "Lines of the audit log",
            query: [
                Query("after", .integer, "those after this number; without it the last ones"),
                Query("limit", .integer, "how many, 1,000 at most"),
            ],
            gives: "AuditPage",
            AuditRoutes.show
        ),
        APIRoute(
            .get,
            "/v1/audit/verify",
            .owner,
            "Whether the audit log is whole",
            gives: "AuditVerification",
            AuditRoutes.verify
        ),
        APIRoute(
            .post,
            "/v1/clock/recover",
            .owner,
            "Go by the wall clock again, after it was set right",
            gives: "RevocationResult",
            AuditRoutes.recoverClock
        ),
    ]
}

/// Agents' addresses: the third part of the table.
extension RouteTable {
    static let agents: [APIRoute] =
        door("/mcp", "The broker's own tools", MCPRoutes.broker)
        + door("/e/{id}/mcp", "An app's own tools", MCPRoutes.app)
        + door("/all/mcp", "The tools of all apps together, where it is switched on", MCPRoutes.all) + [
            APIRoute(
                .get,
                "/v1/endpoints/{id}/tools",
                .scope(.endpointCall),
                "What an app can do, from the cache while it is away",
                gives: "ToolList",
                MCPRoutes.tools
            ),
            APIRoute(
                .post,
                "/v1/endpoints/{id}/call",
                .scope(.endpointCall),
                "Call a tool of an app",
                takes: "ToolCallRequest",
                gives: "ToolAnswer",
                creates: false,
                MCPRoutes.call
            ),
            APIRoute(
                .get,
                "/v1/artifacts/{sha}",
                .holder,
                "What a result links to as patchbay://artifact/{sha}, for an hour",
                gives: "file",
                ArtifactRoutes.show
            ),
            APIRoute(
                .get,
                "/mcp/server-card",
                .holder,
                "What is at /mcp (experimental)",
                gives: "ServerCard",
                ServerCardRoutes.broker
            ),
            APIRoute(
                .get,
                "/e/{id}/mcp/server-card",
                .scope(.registryRead),
                "What is at an app's address (experimental)",
                gives: "ServerCard",
                ServerCardRoutes.app
            ),
            APIRoute(
                .get,
                "/.well-known/ai-catalog.json",
                .scope(.registryRead),
                "Every server card (experimental)",
                gives: "Catalog",
                ServerCardRoutes.catalog
            ),
        ]

    /// Streamable HTTP in every revision. What a scope allows, the server behind it looks at.
    private static func door(_ path: String, _ what: String, _ handler: @escaping APIRoute.Handler) -> [APIRoute] {
        [
            APIRoute(
                .post,
                path,
                .holder,
                "\(what): one MCP message",
                takes: "MCPMessage",
                gives: "MCPMessage",
                creates: false,
                handler
            ),
            APIRoute(.get, path, .holder, "\(what): the stream of a session", gives: "events", handler),
            APIRoute(.delete, path, .holder, "\(what): end a session", handler),
        ]
    }
}
