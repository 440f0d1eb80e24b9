package import Model

/// A way to an endpoint that may be taken, and the secret to show there.
package struct Passage: Sendable {
    package let route: Route
    /// Nil where none is held for it.
    package let secret: EndpointSecret?

    package init(_ route: Route, secret: EndpointSecret? = nil) {
        self.route = route
        self.secret = secret
    }
}
