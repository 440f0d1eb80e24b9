package import Model

/// Routes and secrets that a caller may use for an endpoint, all looked up in one step.
package struct AuthorizedRoutes: Sendable {
    /// The approved routes in the endpoint's order; empty when none is approved.
    package let routes: [AuthorizedRoute]
    /// True if the endpoint has routes and none of them is approved.
    package let isUnapproved: Bool
    /// True if a secret is stored but must not be sent. The secret is for an earlier launch of the app, or was given
    /// under an earlier approval.
    package let isSecretOutdated: Bool

    package init(_ routes: [AuthorizedRoute], isUnapproved: Bool = false, isSecretOutdated: Bool = false) {
        self.routes = routes
        self.isUnapproved = isUnapproved
        self.isSecretOutdated = isSecretOutdated
    }

    /// True if a route has a secret to send.
    package var hasSecret: Bool { routes.contains { $0.secret != nil } }

    /// A copy for callers without the scope `secret.use`: the same routes, with the secrets withheld.
    package var withoutSecrets: AuthorizedRoutes {
        AuthorizedRoutes(
            routes.map { AuthorizedRoute($0.route, withheld: $0.secret, observation: $0.observation) },
            isUnapproved: isUnapproved
        )
    }
}

/// An approved route to an endpoint, and its secret.
package struct AuthorizedRoute: Sendable {
    package let route: Route
    /// The secret to send; nil when none is stored for this route.
    package let secret: EndpointSecret?

    /// A stored secret that this caller may not use. Used only for redaction of responses.
    package let withheld: EndpointSecret?

    /// The observation of the launch that the secret is for; nil if the launch is not observed.
    package let observation: LaunchObservation?

    package init(
        _ route: Route,
        secret: EndpointSecret? = nil,
        withheld: EndpointSecret? = nil,
        observation: LaunchObservation? = nil
    ) {
        self.route = route
        self.secret = secret
        self.withheld = withheld
        self.observation = observation
    }

    /// Returns whether a connection that is established now leads to the launch that was looked up. Call it before a
    /// byte of the secret is sent.
    package func leadsToLaunch() async -> Bool { await observation?.isUnbroken() ?? true }
}
