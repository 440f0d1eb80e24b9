/// What a redeemer shows and says about itself: the body of `POST /v1/invites/redeem`.
package struct RedemptionSpec: Sendable, Codable {
    /// `pbi_…`.
    package let token: String
    /// 22 to 1,024 letters or digits from a random source, kept to itself: the same ones again within a minute bring the
    /// same grant again.
    package let client: String
    package let name: SanitizedText
    /// Less than the invite gives, if it wants less.
    package let permissions: Permissions?

    package init(token: String, client: String, name: SanitizedText, permissions: Permissions? = nil) {
        self.token = token
        self.client = client
        self.name = name
        self.permissions = permissions
    }
}
