/// An app's own session token, on its way to the broker: the body of `PUT` and `POST /v1/endpoints/{id}/secret`.
package struct EndpointSecretSpec: Sendable, Codable {
    /// One line of printable ASCII without blanks, 1 to 4,096 bytes.
    package let secret: String
    /// `pbi_…`: an app that has no grant yet redeems this one on the way (`POST` only); then `client` and `name` as in
    /// `RedemptionSpec`.
    package let invite: String?
    package let client: String?
    package let name: SanitizedText?
    /// Where the app says that it listens: it logs its secret before it is announced there.
    package let port: UInt16?

    package init(
        secret: String,
        invite: String? = nil,
        client: String? = nil,
        name: SanitizedText? = nil,
        port: UInt16? = nil
    ) {
        self.secret = secret
        self.invite = invite
        self.client = client
        self.name = name
        self.port = port
    }
}
