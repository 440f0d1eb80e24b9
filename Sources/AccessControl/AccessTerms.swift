package import Model

/// What a process on this machine asks for.
package struct AccessTerms: Sendable {
    package let permissions: Permissions
    package let name: SanitizedText
    /// To the user who asks, unless it needs a token for somebody else's door.
    package let isBearer: Bool
    /// Seconds that the grant is to live: 1 to 30 days.
    package let lifetime: Int

    package init(
        _ permissions: Permissions,
        name: SanitizedText,
        isBearer: Bool = false,
        lifetime: Int = 28_800
    ) {
        self.permissions = permissions
        // Owners read it in tables: a longer one would push out of sight what they have to decide about.
        self.name = SanitizedText(name.text)
        self.isBearer = isBearer
        self.lifetime = lifetime
    }
}
