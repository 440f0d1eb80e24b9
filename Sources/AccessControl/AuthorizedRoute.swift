package import Model

/// A way to an endpoint that may be taken, and the secret to show there.
package struct AuthorizedRoute: Sendable {
    package let route: Route
    /// Nil where none is held for it.
    package let secret: EndpointSecret?

    /// A secret that is held and not shown, as the caller may not have it shown.
    package let withheld: EndpointSecret?

    package init(_ route: Route, secret: EndpointSecret? = nil, withheld: EndpointSecret? = nil) {
        self.route = route
        self.secret = secret
        self.withheld = withheld
    }
}
