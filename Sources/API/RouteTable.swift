import HTTPTypes
import Hummingbird

/// One address of the API: what it is called, what it does, and who does it.
struct APIRoute: Sendable {
    typealias Handler = @Sendable (Call) async throws -> Response

    let method: HTTPRequest.Method
    /// With parameters in braces, as OpenAPI writes them.
    let path: String
    let summary: String
    /// What may be added after `?`: name, and type in JSON Schema.
    let query: [(name: String, type: String)]
    /// Names of schemas in the OpenAPI document; nil where there is no body.
    let takes: String?
    let gives: String?
    let handler: Handler

    init(
        _ method: HTTPRequest.Method,
        _ path: String,
        _ summary: String,
        query: [(name: String, type: String)] = [],
        takes: String? = nil,
        gives: String? = nil,
        _ handler: @escaping Handler
    ) {
        self.method = method
        self.path = path
        self.summary = summary
        self.query = query
        self.takes = takes
        self.gives = gives
        self.handler = handler
    }
}

/// The whole API on one screen. The router and `openapi.json` are both made from it, so neither can say more than the other.
enum RouteTable {
    static let all: [APIRoute] = [
        APIRoute(.get, "/v1/status", "How the broker is", gives: "BrokerStatus", StatusRoutes.show),

        APIRoute(
            .get,
            "/v1/endpoints",
            "Every endpoint; with since and wait, as soon as there is news",
            query: [("state", "string"), ("app", "string"), ("since", "integer"), ("wait", "integer")],
            gives: "EndpointList",
            EndpointRoutes.list
        ),
        APIRoute(
            .post,
            "/v1/endpoints",
            "Add a static endpoint",
            takes: "StaticEndpoint",
            gives: "Endpoint",
            EndpointRoutes.add
        ),
        APIRoute(.get, "/v1/endpoints/{id}", "One endpoint", gives: "Endpoint", EndpointRoutes.show),
        APIRoute(.delete, "/v1/endpoints/{id}", "Forget an offline or static endpoint", EndpointRoutes.forget),
        APIRoute(
            .post,
            "/v1/endpoints/{id}/probe",
            "Ask an endpoint now whether it answers",
            gives: "Endpoint",
            EndpointRoutes.probe
        ),

        APIRoute(.get, "/v1/devices", "Every phone that is attached", gives: "DeviceList", DeviceRoutes.list),

        APIRoute(.get, "/v1/tunnels", "Every tunnel", gives: "TunnelList", TunnelRoutes.list),
        APIRoute(.post, "/v1/tunnels", "Open a tunnel", takes: "TunnelSpec", gives: "Tunnel", TunnelRoutes.open),
        APIRoute(.delete, "/v1/tunnels", "Remove every tunnel", gives: "Removal", TunnelRoutes.removeAll),
        APIRoute(
            .post,
            "/v1/tunnels/held",
            "Open tunnels that live as long as this request",
            takes: "TunnelSpecs",
            gives: "events",
            TunnelRoutes.hold
        ),
        APIRoute(.get, "/v1/tunnels/{id}", "One tunnel", gives: "Tunnel", TunnelRoutes.show),
        APIRoute(.delete, "/v1/tunnels/{id}", "Remove a tunnel", TunnelRoutes.remove),

        APIRoute(
            .get,
            "/v1/advertisements",
            "Every advertisement",
            gives: "AdvertisementList",
            AdvertisementRoutes.list
        ),
        APIRoute(
            .post,
            "/v1/advertisements",
            "Advertise a service",
            takes: "AdvertisementSpec",
            gives: "Advertisement",
            AdvertisementRoutes.advertise
        ),
        APIRoute(
            .post,
            "/v1/advertisements/held",
            "Advertise a service as long as this request lives",
            takes: "AdvertisementSpec",
            gives: "events",
            AdvertisementRoutes.hold
        ),
        APIRoute(
            .patch,
            "/v1/advertisements/{id}",
            "Change the TXT record of an advertisement",
            takes: "AdvertisementChange",
            gives: "Advertisement",
            AdvertisementRoutes.update
        ),
        APIRoute(.delete, "/v1/advertisements/{id}", "Withdraw an advertisement", AdvertisementRoutes.withdraw),

        APIRoute(.get, "/v1/events", "Every change as it happens", gives: "events", EventRoutes.follow),
        APIRoute(.get, "/health", "Whether the broker answers", gives: "Health", StatusRoutes.health),
        APIRoute(.get, "/openapi.json", "This API, described", gives: "OpenAPI", StatusRoutes.openAPI),
    ]

    /// A responder for all of it, with every error said as RFC 9457 wants it.
    static func responder(for broker: Broker) -> some HTTPResponder<CallContext> {
        let router = Router(context: CallContext.self)
        router.add(middleware: ProblemMiddleware())
        for route in all {
            router.on(RouterPath(route.path), method: route.method) { request, context in
                try await route.handler(
                    Call(
                        request: request,
                        parameters: context.parameters,
                        caller: context.caller,
                        broker: broker,
                        aftermath: context.aftermath
                    )
                )
            }
        }
        return router.buildResponder()
    }
}
