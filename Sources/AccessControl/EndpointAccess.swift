/// What may be done to reach an endpoint for an agent, all looked up in one step.
package struct EndpointAccess: Sendable {
    /// The approved ways, in the endpoint's order; empty where there are none.
    package let passages: [AuthorizedRoute]
    /// The endpoint has routes, and nobody said yes to any of them.
    package let isRefused: Bool
    /// A secret is held and must not be sent: it is for an earlier launch of the app, or was given under an earlier yes.
    package let isSecretOutdated: Bool

    package init(_ passages: [AuthorizedRoute], isRefused: Bool = false, isSecretOutdated: Bool = false) {
        self.passages = passages
        self.isRefused = isRefused
        self.isSecretOutdated = isSecretOutdated
    }

    /// Whether there is a secret to show.
    package var hasSecret: Bool { passages.contains { $0.secret != nil } }

    /// The same for somebody who may not have a secret presented.
    package var withoutSecrets: EndpointAccess {
        EndpointAccess(passages.map { AuthorizedRoute($0.route, withheld: $0.secret) }, isRefused: isRefused)
    }
}
