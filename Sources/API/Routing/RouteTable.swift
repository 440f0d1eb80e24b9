import AccessControl
import Model

/// The whole HTTP API, one row for each route.
///
/// Requests are matched against this table, and `openapi.json` is made from it, so they agree. Each row names the permission that
/// its caller needs.
enum RouteTable {
    static let all =
        core + access + team + tools + documents.map { $0.of(.document) } + mcpServers.map { $0.of(.mcpServer) }

    private static let noBonjour = "Bonjour is turned off in the configuration (discovery.enabled)"

    /// Endpoints, devices, tunnels, advertisements and the broker itself.
    // swift-format-ignore
    private static let core: [APIRoute] = [
        .get("/v1/status", .scope(.registryRead), "Show the broker status", returns: "BrokerStatus", StatusRoutes.show),

        .get("/v1/endpoints", .scope(.registryRead), "List the endpoints that the caller may see",
            query: EndpointRoutes.listQuery, returns: "EndpointList", EndpointRoutes.list),
        .create("/v1/endpoints", .owner, "Add a static endpoint",
            takes: "StaticEndpoint", returns: "Endpoint", EndpointRoutes.add),
        .get("/v1/endpoints/{id}", .scope(.registryRead), "Show an endpoint", returns: "Endpoint", EndpointRoutes.show),
        .delete("/v1/endpoints/{id}", .owner, "Remove an offline or static endpoint", EndpointRoutes.remove).on(.refused),
        .post("/v1/endpoints/{id}/probe", .scope(.endpointCall), "Check now whether an endpoint answers",
            returns: "Endpoint", EndpointRoutes.probe).on(.asked),
        .put("/v1/endpoints/{id}/approval", .owner, "Approve one network address of an endpoint",
            takes: "ApprovalSpec", returns: "Endpoint", ApprovalRoutes.approve).on(.refused),
        .delete("/v1/endpoints/{id}/approval", .owner, "Revoke the approval of an endpoint and delete its token",
            ApprovalRoutes.revoke).on(.refused),
        .put("/v1/endpoints/{id}/denial", .owner, "Deny network addresses of an endpoint until one is approved",
            takes: "DenialSpec", returns: "Endpoint", ApprovalRoutes.deny).on(.refused),
        .put("/v1/endpoints/{id}/secret", .owner, "Store an app's own token",
            takes: "EndpointSecretSpec", header: ApprovalRoutes.trialHeader, ApprovalRoutes.setSecret).on(.refused),
        .post("/v1/endpoints/{id}/secret", .public, "Store a token that the app sends with a grant or an invite",
            takes: "EndpointSecretSpec", ApprovalRoutes.postSecret).on(.refused),
        .delete("/v1/endpoints/{id}/secret", .owner, "Delete an app's token",
            returns: "DeleteResponse", ApprovalRoutes.deleteSecret).on(.refused),
        .get("/v1/endpoints/{id}/vm-service", .scope(.secretRead), "Show the URLs of a Dart VM service, which are secrets",
            returns: "DartVMService", VMServiceRoutes.show).on(.refused),
        .get("/v1/endpoints/{id}/pages", .scope(.endpointCall), "List the pages of a DevTools server, an endpoint of kind web",
            returns: "WebPages", WebPageRoutes.show).on(.refused),
        .get("/v1/approvals", .owner, "List the approved network addresses",
            returns: "ApprovalList", ApprovalRoutes.list),
        .get("/v1/denials", .owner, "List the denied network addresses",
            returns: "DenialList", ApprovalRoutes.listDenials),

        .get("/v1/devices", .scope(.registryRead), "List the attached devices",
            returns: "DeviceList", DeviceRoutes.list),
        .put("/v1/devices/{udid}/note", .owner, "Set or remove the label and the note of a device",
            takes: "DeviceNote", DeviceRoutes.setNote),
        .get("/v1/devices/{udid}/log", .owner, "Show the log of an Android phone, without secrets",
            query: PhoneLogRoutes.query, returns: "PhoneLog", PhoneLogRoutes.device),

        .get("/v1/profiles", .owner, "List the profiles of debug servers",
            returns: "ProfileList", ProfileRoutes.list),
        .post("/v1/profiles/check", .owner, "Check a profile file, alone or against a live server",
            takes: "ProfileCheckSpec", returns: "ProfileCheck", ProfileRoutes.check),

        .get("/v1/configuration", .owner, "List the configuration in effect, with the source of each value",
            returns: "Configuration", ConfigurationRoutes.list),

        .get("/v1/tunnels", .scope(.tunnelOpen), "List the caller's tunnels", returns: "TunnelList", TunnelRoutes.list),
        .create("/v1/tunnels", .scope(.tunnelOpen), "Open a tunnel",
            takes: "TunnelSpec", returns: "Tunnel", TunnelRoutes.create),
        .create("/v1/tunnels/all", .scope(.tunnelOpen), "Open several tunnels, all or none",
            takes: "TunnelSpecs", returns: "TunnelList", TunnelRoutes.createAll),
        .delete("/v1/tunnels", .scope(.tunnelOpen), "Remove all of the caller's tunnels",
            returns: "DeleteResponse", TunnelRoutes.removeAll),
        .post("/v1/tunnels/ephemeral", .scope(.tunnelOpen), "Open tunnels that are removed when this request ends",
            takes: "TunnelSpecs", returns: "events", TunnelRoutes.createEphemeral),
        .get("/v1/tunnels/{id}", .scope(.tunnelOpen), "Show a tunnel", returns: "Tunnel", TunnelRoutes.show),
        .delete("/v1/tunnels/{id}", .scope(.tunnelOpen), "Remove a tunnel", TunnelRoutes.remove),

        .get("/v1/reverse-tunnels", .owner, "List the ports of Android phones that lead to this machine",
            returns: "ReverseTunnelList", ReverseTunnelRoutes.list),
        .put("/v1/reverse-tunnels/{udid}/{port}", .owner, "Make a port of an Android phone lead to a port of this machine",
            takes: "ReverseTunnelSpec", returns: "ReverseTunnel", ReverseTunnelRoutes.open),
        .delete("/v1/reverse-tunnels/{udid}/{port}", .owner, "Close a port of an Android phone that leads to this machine",
            ReverseTunnelRoutes.remove),

        .get("/v1/streams", .scope(.tunnelOpen), "Turn the connection into a byte stream (101, patchbay-stream/1)",
            query: StreamRoutes.query, returns: "stream", StreamRoutes.open).on(.asked),

        .get("/v1/leases", .scope(.registryRead), "List the leases of the endpoints that the caller may see",
            query: LeaseRoutes.listQuery, returns: "LeaseList", LeaseRoutes.list).on(.asked),
        .create("/v1/leases", .scope(.endpointCall), "Take or renew the lease of an endpoint and of its phone",
            takes: "LeaseSpec", returns: "Lease", LeaseRoutes.take).on(.asked),
        .delete("/v1/leases/{id}", .scope(.endpointCall), "End the caller's own lease; any lease for an owner",
            LeaseRoutes.end).on(.asked),

        .get("/v1/advertisements", .owner, "List the advertisements",
            returns: "AdvertisementList", AdvertisementRoutes.list),
        .create("/v1/advertisements", .owner, "Advertise a service",
            takes: "AdvertisementSpec", returns: "Advertisement", AdvertisementRoutes.create).unavailable(when: noBonjour),
        .post("/v1/advertisements/ephemeral", .owner, "Advertise a service until this request ends",
            takes: "AdvertisementSpec", returns: "events", AdvertisementRoutes.createEphemeral).unavailable(when: noBonjour),
        .patch("/v1/advertisements/{id}", .owner, "Change the TXT record of an advertisement",
            takes: "AdvertisementUpdate", returns: "Advertisement", AdvertisementRoutes.update).unavailable(when: noBonjour),
        .delete("/v1/advertisements/{id}", .owner, "Remove an advertisement", AdvertisementRoutes.remove).unavailable(when: noBonjour),

        .create("/v1/registrations", .scope(.endpointRegister), "Register the sending app at the sender's address",
            takes: "RegistrationSpec", returns: "Registration", RegistrationRoutes.register),
        .put("/v1/registrations/{id}", .scope(.endpointRegister), "Keep a registration for 90 s more (a heartbeat)",
            RegistrationRoutes.heartbeat),
        .delete("/v1/registrations/{id}", .scope(.endpointRegister), "End a registration", RegistrationRoutes.end),

        .get("/v1/brokers", .scope(.registryRead), "List the brokers that advertise themselves on the network",
            returns: "NearbyBrokerList", BrokerRoutes.list),
        .get("/v1/remote", .owner, "Show the remote listener", returns: "RemoteStatus", RemoteRoutes.show),
        .put("/v1/remote", .owner, "Turn the remote listener on or off",
            takes: "RemoteSpec", returns: "RemoteStatus", RemoteRoutes.set),

        .get("/v1/activity", .grantHolder, "List the calls of apps' tools, and the changes between them",
            query: ActivityRoutes.listQuery, returns: "ActivityPage", ActivityRoutes.list),
        .get("/v1/activity/{id}/picture", .grantHolder, "Show the picture in the result of a call",
            query: ActivityRoutes.pictureQuery, returns: "file", ActivityRoutes.picture),
        .get("/v1/usage", .grantHolder, "Show the use of phones and grants over the last 24 hours",
            returns: "Usage", UsageRoutes.show),
        .get("/v1/events", .scope(.registryRead), "Stream every change", query: EventRoutes.query,
            returns: "events", EventRoutes.stream),
        .get("/v1/problems", .scope(.registryRead), "List what needs a person, with the next step",
            returns: "ProblemList", ProblemRoutes.list),
        .get("/v1/agents", .grantHolder, "List the programs that use MCP through the broker; all of them for an owner",
            returns: "AgentList", AgentRoutes.list),
    ]

    /// Invites, grants, access requests and the audit log.
    // swift-format-ignore
    private static let access: [APIRoute] = [
        .get("/v1/invites", .scope(.inviteCreate), "List the invites, without their secrets",
            returns: "InviteList", InviteRoutes.list),
        .create("/v1/invites", .scope(.inviteCreate), "Create an invite (a one-time token)",
            query: InviteRoutes.createQuery, takes: "InviteSpec", returns: "IssuedInvite", InviteRoutes.create),
        .create("/v1/invites/redeem", .public, "Exchange an invite for a grant",
            takes: "RedemptionSpec", returns: "IssuedGrant", survivesRevocation: true, InviteRoutes.redeem),
        .delete("/v1/invites/{id}", .scope(.inviteCreate), "Revoke an invite",
            returns: "RevocationResult", survivesRevocation: true, InviteRoutes.revoke),

        .get("/v1/grants", .grantHolder, "List the caller's grant and its descendants; all grants for an owner",
            returns: "GrantList", GrantRoutes.list),
        .create("/v1/grants", .owner, "Create a grant for the clients of a new unix socket",
            takes: "SocketGrantSpec", returns: "Grant", GrantRoutes.create),
        .delete("/v1/grants", .owner, "Revoke every grant and every open invite",
            returns: "RevocationResult", survivesRevocation: true, GrantRoutes.revokeAll),
        .get("/v1/grants/{id}", .grantHolder, "Show a grant; the ID self is the caller's own",
            returns: "Grant", GrantRoutes.show),
        .delete("/v1/grants/{id}", .grantHolder, "Revoke a grant; its connections are closed before the response",
            returns: "RevocationResult", survivesRevocation: true, GrantRoutes.revoke),

        .create("/v1/dashboard/codes", .owner, "Create a one-time code for the dashboard (on the control socket)",
            returns: "DashboardCode", DashboardRoutes.createCode),
        .create("/v1/dashboard/sessions", .public, "Exchange a code for a session (on the loopback listener)",
            takes: "DashboardSessionSpec", returns: "DashboardSession", DashboardRoutes.createSession),

        .get("/v1/access-requests", .owner, "List the pending access requests",
            returns: "AccessRequestList", AccessRequestRoutes.list),
        .create("/v1/access-requests", .localProcess, "Request access",
            takes: "AccessRequestSpec", returns: "AccessRequestCreated", AccessRequestRoutes.create),
        .post("/v1/access-requests/poll", .localProcess, "Poll the state of an access request",
            takes: "AccessRequestPoll", returns: "AccessRequestStatus", AccessRequestRoutes.poll),
        .post("/v1/access-requests/unlock", .owner, "Accept access requests again after too many wrong codes",
            AccessRequestRoutes.unlock),
        .post("/v1/access-requests/{userCode}/approve", .owner, "Approve the access request with this code, or a part of it",
            takes: "AccessRequestLimits", returns: "AccessRequest", AccessRequestRoutes.approve),
        .post("/v1/access-requests/{userCode}/deny", .owner, "Deny the access request with this code",
            returns: "AccessRequest", AccessRequestRoutes.deny),

        .get("/v1/audit", .owner, "Read entries of the audit log",
            query: AuditRoutes.listQuery, returns: "AuditPage", AuditRoutes.list),
        .get("/v1/audit/verify", .owner, "Verify the integrity of the audit log",
            returns: "AuditVerification", AuditRoutes.verify),
        .post("/v1/clock/recover", .owner, "Follow the wall clock again after it was corrected",
            returns: "RevocationResult", AuditRoutes.recoverClock),
    ]

    /// The team of the broker. A host that joins has only the invite in its request.
    // swift-format-ignore
    private static let team: [APIRoute] = [
        .get("/v1/team", .owner, "Show the team, its hosts and its registry", returns: "TeamStatus", TeamRoutes.show),
        .create("/v1/team", .owner, "Create a team with this host as its authority, or complete it",
            takes: "TeamSpec", returns: "TeamStatus", TeamRoutes.create),
        .delete("/v1/team", .owner, "Leave the team, and delete its files", TeamRoutes.leave),
        .post("/v1/team/join", .owner, "Join the team of another host",
            takes: "TeamJoinSpec", returns: "TeamStatus", TeamRoutes.join),
        .get("/v1/team/invites", .owner, "List the open invites for hosts, without their secrets (on the authority)",
            returns: "OpenTeamInviteList", TeamRoutes.listInvites),
        .create("/v1/team/invites", .owner, "Create an invite with which each of some hosts joins once (on the authority)",
            takes: "TeamInviteSpec", returns: "TeamInvite", TeamRoutes.invite),
        .delete("/v1/team/invites/{id}", .owner, "Revoke an invite for hosts (on the authority)",
            TeamRoutes.revokeInvite),
        .create("/v1/team/members", .public, "Admit the host that sends an invite (on the authority)",
            takes: "TeamMemberSpec", returns: "TeamAdmission", TeamRoutes.admit),
        .post("/v1/team/members/renewal", .member, "Renew the certificate of the member that asks (on the authority)",
            takes: "TeamRenewalSpec", returns: "TeamRenewal", TeamRoutes.renew).on(.asked),
        .delete("/v1/team/members/{host}", .owner, "Remove a host from the team (on the authority)", TeamRoutes.remove),
        .create("/v1/team/certificates", .owner, "Issue the certificate of an etcd node (on the authority)",
            takes: "TeamCertificateSpec", returns: "TeamCertificate", TeamRoutes.issue),
    ]

    /// Documents and pages outside of `/v1`.
    // swift-format-ignore
    private static let documents: [APIRoute] = [
        .get("/metrics", .scope(.registryRead), "Show the metrics in Prometheus' text format",
            returns: "metrics", MetricsRoutes.show),
        .get("/health", .public, "Check that the broker answers", returns: "Health", StatusRoutes.health),
        .get("/", .public, "Show the dashboard, a web page", returns: "file", DashboardRoutes.index),
        .get("/dashboard/{hash}/{name}", .public, "Show a file of the dashboard", returns: "file", DashboardRoutes.file),
        .get("/openapi.json", .public, "Describe this API", returns: "OpenAPI", StatusRoutes.openAPI),
        .get("/mcp/server-card", .grantHolder, "Show the server card of /mcp (experimental)",
            returns: "ServerCard", ServerCardRoutes.broker),
        .get("/e/{id}/mcp/server-card", .scope(.registryRead), "Show an app's server card (experimental)",
            returns: "ServerCard", ServerCardRoutes.app),
        .get("/.well-known/ai-catalog.json", .scope(.registryRead), "List all server cards (experimental)",
            returns: "Catalog", ServerCardRoutes.catalog),
    ]

    /// The three kinds of MCP server.
    private static let mcpServers: [APIRoute] =
        mcpServer("/mcp", name: "The broker's MCP server", MCPRoutes.broker)
        + mcpServer("/e/{id}/mcp", name: "An app's MCP server", MCPRoutes.app).map { $0.on(.forwarded(.mcp)) }
        + mcpServer("/all/mcp", name: "The MCP server of all apps together, if it is enabled", MCPRoutes.all)

    /// Tools of apps over plain HTTP, and artifacts.
    // swift-format-ignore
    private static let tools: [APIRoute] = [
        .get("/v1/endpoints/{id}/tools", .scope(.endpointCall), "List an app's tools, cached while it is offline",
            returns: "ToolList", MCPRoutes.tools).on(.forwarded(.tools)),
        .post("/v1/endpoints/{id}/call", .scope(.endpointCall), "Call a tool of an app",
            takes: "ToolCallRequest", returns: "ToolAnswer", MCPRoutes.call).on(.forwarded(.call)),
        .get("/v1/endpoints/{id}/screen", .scope(.endpointCall), "Show what is possible with the screen of an app",
            returns: "Screen", ScreenRoutes.show).on(.forwarded(.tools)),
        .get("/v1/endpoints/{id}/screen/picture", .scope(.endpointCall), "Show the screen of an app, without a lease",
            query: ScreenRoutes.pictureQuery, returns: "file", ScreenRoutes.picture).on(.forwarded(.tools)),
        .post("/v1/endpoints/{id}/screen/input", .scope(.endpointCall), "Tap, swipe or type on the screen of an app",
            takes: "ScreenInput", ScreenRoutes.send).on(.forwarded(.tools)),
        .get("/v1/endpoints/{id}/log", .scope(.endpointCall), "Show what an app logged on its Android phone, without secrets",
            query: PhoneLogRoutes.query, returns: "PhoneLog", PhoneLogRoutes.endpoint).on(.forwarded(.tools)),
        .get("/v1/artifacts/{sha}", .grantHolder, "Download patchbay://artifact/{sha} of a tool result (kept 1 hour)",
            returns: "file", ArtifactRoutes.show).on(.asked),
    ]

    /// The three methods of Streamable HTTP, in every protocol version. The MCP server checks the scopes.
    private static func mcpServer(_ path: String, name: String, _ handler: @escaping APIRoute.Handler) -> [APIRoute] {
        [
            .post(path, .grantHolder, "\(name): send a message", takes: "MCPMessage", returns: "MCPMessage", handler),
            .get(path, .grantHolder, "\(name): open the event stream of a session", returns: "events", handler),
            .delete(path, .grantHolder, "\(name): end a session", handler),
        ]
    }
}
