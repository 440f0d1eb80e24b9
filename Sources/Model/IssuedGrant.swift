/// A grant with its secret: the answer to a redemption, a rotation and a delegation, which is the only time that it is told.
package struct IssuedGrant: Sendable, Codable {
    package let grant: Grant
    /// `pbg_…`: a secret, to be sent as `Authorization: Bearer pbg_…`.
    package let token: String

    package init(grant: Grant, token: String) {
        self.grant = grant
        self.token = token
    }
}
