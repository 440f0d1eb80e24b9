package import FoundationEssentials
package import Model

/// Invites: the list, creation and redemption.
package struct InviteService: Sendable {
    let store: AccessStore

    /// Every invite, newest first, including those that ended in the last day.
    package var list: [Invite] {
        get async { await store.state.invites.values.sorted { $0.createdAt > $1.createdAt }.map(\.invite) }
    }

    /// Creates an invite. The API has verified that the caller is an owner or holds the named grant.
    ///
    /// - Throws: `AccessError.tooWide`, `.outOfRange`, `.limit`, `.refused` when the grant has ended, `.notSaved`.
    package func create(_ terms: InviteTerms, by caller: AuditActor, from source: RequestSource) async throws -> (
        Invite, Token
    ) {
        try await store.transaction { store in
            var token = Token(random: .invite)
            while store.state.invites[token.id] != nil { token = Token(random: .invite) }
            let change = try store.state.invite(terms, as: token, by: caller, from: source, at: store.now())
            try store.commit(change)
            return (change.invites[0].invite, token)
        }
    }

    /// Redeems an invite for a grant. The same client gets the same grant again within 60 seconds.
    ///
    /// - Throws: `AccessError.refused`, the same for every reason; `.tooManyAttempts`; `.tooWide` and `.notSaved`,
    ///   after which the invite is unspent.
    package func redeem(
        _ invite: Token,
        for request: Redemption,
        from source: RequestSource
    ) async throws -> (Grant, Token) {
        try request.check()
        return try await store.transaction { store in
            let now = store.now()
            switch try InviteRedemption(state: store.state, keys: store.keys, source: source, now: now)
                .redeem(invite, for: request)
            {
            case .granted(let change, let grant, let token):
                do { try store.commit(change) } catch is AccessDatabase.Conflict { throw AccessError.refused }
                return (grant.grant(at: now), token)
            case .again(let grant, let token):
                return (grant.grant(at: now), token)
            case .refused(let why, let change):
                throw try store.reject(invite, because: why, saving: change, from: source, at: now)
            }
        }
    }
}

/// Terms of an invite and of its grants.
package struct InviteTerms: Hashable, Sendable {
    /// Allowed lifetimes of an invite in seconds, up to one day.
    static let lifetimes = 1...86_400
    static let uses = 1...100
    /// Allowed lifetimes and idle timeouts of a grant in seconds, up to 30 days.
    static let grantLifetimes = 1...2_592_000
    /// Default lifetime of a grant in seconds (8 hours).
    static let defaultGrantLifetime = 28_800

    package var permissions: Permissions
    /// Maximum number of redemptions: 1 to 100.
    package var uses: Int
    /// Lifetime of the invite in seconds: 1 to 86,400 (one day).
    package var lifetime: Int
    /// Lifetime of its grants in seconds: 1 second to 30 days. Nil means 8 hours, limited by the inviter's own grant.
    package var grantLifetime: Int?
    /// Idle timeout of its grants in seconds: 1 second to 30 days.
    package var grantIdle: Int
    /// The user that the grants are bound to; nil for bearer grants.
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
        guard Self.lifetimes.contains(lifetime) else {
            throw .outOfRange("the lifetime of an invite is 1 second to 24 hours")
        }
        guard Self.grantLifetimes.contains(grantLifetime ?? 1), Self.grantLifetimes.contains(grantIdle) else {
            throw .outOfRange("the lifetime and idle timeout of a grant are 1 second to 30 days")
        }
        guard !permissions.scopes.isEmpty else { throw .outOfRange("an invite needs at least one scope") }
        if case .bundles(let bundles) = permissions.selector, bundles.contains("") {
            throw .outOfRange("a bundle identifier must not be empty")
        }
        guard uses == 1 || !permissions.allow(.admin) else {
            throw .tooWide("an invite with several uses cannot give \(Scope.admin.rawValue)")
        }
    }
}

/// The redeemer's part of a redemption.
package struct Redemption: Sendable {
    /// A key that identifies a redeemer that repeats the request after a lost response.
    ///
    /// 16 to 1,024 random bytes that the redeemer keeps secret. A client that knows them and the invite gets the same
    /// grant for 60 seconds.
    package let client: Data
    package let name: SanitizedText
    /// A subset of the invite's permissions; nil for all of them.
    package let permissions: Permissions?

    package init(client: Data, name: SanitizedText, permissions: Permissions? = nil) {
        self.client = client
        // Limits the length, because owners read the name in tables next to what they approve.
        self.name = SanitizedText(name.text)
        self.permissions = permissions
    }

    func check() throws(AccessError) {
        guard (16...1_024).contains(client.count) else {
            throw .outOfRange("a client key has 16 to 1024 bytes; use 32 random bytes")
        }
    }
}
