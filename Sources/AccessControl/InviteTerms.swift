package import Model

/// What an invite is to give, and how it is to be redeemed.
package struct InviteTerms: Hashable, Sendable {
    static let lifetimes = 1...86_400
    static let uses = 1...100
    static let grantLifetimes = 1...2_592_000
    static let defaultGrantLifetime = 28_800

    package var permissions: Permissions
    /// How often it can be redeemed: 1 to 100.
    package var uses: Int
    /// Seconds until it can no longer be redeemed: 1 to a day.
    package var lifetime: Int
    /// Seconds that its grants live: 1 to 30 days. Nil for 8 hours, or what is left of the inviter's own grant.
    package var grantLifetime: Int?
    /// Seconds that its grants may rest unused: 1 to 30 days.
    package var grantIdle: Int
    /// Whom its grants are bound to; nil where the redeemer's door decides.
    package var binding: GrantBinding?

    package init(
        _ permissions: Permissions,
        uses: Int = 1,
        lifetime: Int = 600,
        grantLifetime: Int? = nil,
        grantIdle: Int = 7_200,
        binding: GrantBinding? = nil
    ) {
        self.permissions = permissions
        self.uses = uses
        self.lifetime = lifetime
        self.grantLifetime = grantLifetime
        self.grantIdle = grantIdle
        self.binding = binding
    }

    func check() throws(AccessError) {
        guard Self.uses.contains(uses) else { throw .outOfRange("an invite can be redeemed 1 to 100 times") }
        guard Self.lifetimes.contains(lifetime) else { throw .outOfRange("an invite lives from 1 second to 24 hours") }
        guard Self.grantLifetimes.contains(grantLifetime ?? 1), Self.grantLifetimes.contains(grantIdle) else {
            throw .outOfRange("a grant lives, and rests, from 1 second to 30 days")
        }
        guard !permissions.scopes.isEmpty else { throw .outOfRange("an invite without a scope would allow nothing") }
        if case .bundles(let bundles) = permissions.selector, bundles.contains("") {
            throw .outOfRange("an app's bundle identifier is not empty")
        }
        guard uses == 1 || !permissions.allow(.admin) else {
            throw .tooWide("an invite for several never gives \(Scope.admin.rawValue)")
        }
    }
}
