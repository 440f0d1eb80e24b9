package import FoundationEssentials
package import Model

/// What a redeemer says about itself.
package struct Redemption: Sendable {
    /// What is the same when it asks again, because the reply got lost.
    ///
    /// For a bearer 16 to 1,024 random bytes that it keeps to itself, as whoever knows these and the invite gets the same
    /// grant for a minute; over TLS its own key, which the handshake has proved.
    package let client: Data
    package let name: SanitizedText
    /// Less than the invite gives, if it wants less.
    package let permissions: Permissions?
    /// Whom to bind the grant to; an invite that says it too is obeyed instead.
    package let binding: GrantBinding

    package init(client: Data, name: SanitizedText, permissions: Permissions? = nil, binding: GrantBinding = .bearer) {
        self.client = client
        // Owners read it in tables: a longer one would push out of sight what they have to decide about.
        self.name = SanitizedText(name.text)
        self.permissions = permissions
        self.binding = binding
    }

    func check() throws(AccessError) {
        guard (16...1_024).contains(client.count) else {
            throw .outOfRange("a redeemer's key has 16 to 1024 bytes; use 32 random ones")
        }
    }
}
