/// What a process on this machine asks for: the body of `POST /v1/requests`.
package struct AccessRequestSpec: Hashable, Sendable, Codable {
    package var name: SanitizedText
    package var permissions: Permissions
    /// A token for any door and any user, where the usual one is for the asking user's processes on the unix socket.
    package var isBearer: Bool?
    /// Seconds that the grant is to live: 1 to 30 days. Nil is 8 hours.
    package var lifetime: Int?

    package init(name: SanitizedText, permissions: Permissions, isBearer: Bool? = nil, lifetime: Int? = nil) {
        self.name = name
        self.permissions = permissions
        self.isBearer = isBearer
        self.lifetime = lifetime
    }
}
