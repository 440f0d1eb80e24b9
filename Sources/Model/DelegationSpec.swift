/// What part of a grant somebody else is to get: the body of `POST /v1/grants/{id}/delegate`.
package struct DelegationSpec: Hashable, Sendable, Codable {
    package var name: SanitizedText
    package var permissions: Permissions
    /// Seconds that it lives. Nil is 8 hours, or what is left of the grant above it.
    package var lifetime: Int?
    /// Seconds that it may rest unused. Nil is two hours.
    package var idle: Int?
    /// The only user whose processes may use it, on the unix socket. Nil: whoever has the token.
    package var user: UInt32?

    package init(
        name: SanitizedText,
        permissions: Permissions,
        lifetime: Int? = nil,
        idle: Int? = nil,
        user: UInt32? = nil
    ) {
        self.name = name
        self.permissions = permissions
        self.lifetime = lifetime
        self.idle = idle
        self.user = user
    }
}
