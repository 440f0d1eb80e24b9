/// The approval and the secret of one endpoint as access control holds them, without the secret itself.
package struct EndpointTrust: Hashable, Sendable {
    /// The route and the launch that a secret was given for.
    package struct SecretBinding: Hashable, Sendable, Codable {
        /// `ApprovalPolicy.origin` of the route.
        package let origin: String
        /// `EndpointRoute.launch` of the route.
        package let launch: String

        package init(origin: String, launch: String) {
            self.origin = origin
            self.launch = launch
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
