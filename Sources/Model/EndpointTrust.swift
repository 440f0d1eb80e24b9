/// The approval and the secret of one endpoint as access control holds them, without the secret itself.
package struct EndpointTrust: Hashable, Sendable {
    /// The route and the launch that a secret was given for.
    package struct SecretBinding: Hashable, Sendable, Codable {
        /// `ApprovalPolicy.origin` of the route.
        package let origin: String
        /// `EndpointRoute.launch` of the route, or that and the words before it.
        package let launch: String

        /// Before the launch after which an unseen one may come.
        private static let after = "after "

        package init(origin: String, launch: String) {
            self.origin = origin
            self.launch = launch
        }

        /// For the first launch that comes after this binding's, over the same route: it was not seen yet.
        package var next: SecretBinding { SecretBinding(origin: origin, launch: Self.after + launch) }
        package var isForUnseen: Bool { launch.hasPrefix(Self.after) }

        /// Whether a secret with this binding may be sent to a route and launch.
        package func covers(_ other: SecretBinding) -> Bool {
            guard origin == other.origin else { return false }
            return isForUnseen ? launch != Self.after + other.launch : launch == other.launch
        }
    }

    package let approval: Approval?
    /// Empty when no secret is held.
    package let secret: Set<SecretBinding>

    package init(approval: Approval? = nil, secret: some Sequence<SecretBinding> = []) {
        self.approval = approval
        self.secret = Set(secret)
    }

    package static let none = EndpointTrust()
}
