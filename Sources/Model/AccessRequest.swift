package import FoundationEssentials

/// A process on this machine that asks for access and waits for a person's yes (in the manner of RFC 8628).
package struct AccessRequest: Hashable, Sendable, Codable {
    /// `WDJB-MJHT`: what the person types.
    package let code: String
    /// The process that asks.
    package let asker: AuditActor
    package let name: SanitizedText
    package let permissions: Permissions
    package let expires: Date

    package init(code: String, asker: AuditActor, name: SanitizedText, permissions: Permissions, expires: Date) {
        self.code = code
        self.asker = asker
        self.name = name
        self.permissions = permissions
        self.expires = expires
    }
}
