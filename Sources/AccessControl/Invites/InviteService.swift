package import FoundationEssentials
package import Model

extension AccessStore {
    /// Every invite, those that ended in the last day included, the newest first.
    package var invites: [Invite] {
        ledger.invites.values.sorted { $0.created > $1.created }.map(\.invite)
    }

    /// Makes an invite. The door has made sure that the caller is an owner, or holds the grant it names.
    ///
    /// - Throws: `AccessError.tooWide`, `.outOfRange`, `.limit`, `.refused` when the grant has ended, `.notSaved`.
    package func invite(_ terms: InviteTerms, by caller: AuditActor, from origin: RequestSource) throws -> (
        Invite, Token
    ) {
        var token = Token(random: .invite)
        while ledger.invites[token.id] != nil { token = Token(random: .invite) }
        let change = try ledger.invite(terms, as: token, by: caller, from: origin, at: now())
        try commit(change)
        return (change.invites[0].invite, token)
    }

    /// Spends an invite on a grant; the same client gets the same grant again within a minute.
    ///
    /// - Throws: `AccessError.refused`, the same for every reason; `.tooManyAttempts`; `.tooWide` and `.notSaved`, after
    ///   which the invite is unspent.
    package func redeem(_ invite: Token, for request: Redemption, from origin: RequestSource) throws -> (Grant, Token) {
        try request.check()
        let now = now()
        switch try ledger.redeem(invite, for: request, from: origin, at: now, keys: keys) {
        case .granted(let change, let grant, let token):
            do { try commit(change) } catch is AccessDatabase.LostRace { throw AccessError.refused }
            return (grant.grant(at: now), token)
        case .again(let grant, let token):
            return (grant.grant(at: now), token)
        case .refused(let why, let change):
            throw try refuse(invite, why, change, from: origin, at: now)
        }
    }

    /// Counts a wrong token and writes it into the log, unless too many came from there lately.
    ///
    /// - Returns: What to throw.
    func refuse(
        _ token: Token,
        _ why: String,
        _ change: ChangeSet? = nil,
        from origin: RequestSource,
        at now: MonotonicTime
    ) throws -> AccessError {
        let pause = limiter.failed(from: origin, at: now)
        if let change {
            // Wrong secrets for a real invite always count.
            try commit(change)
        } else if pause == nil {
            var event = AuditEvent(.refused, by: .stranger, from: origin)
            // An id that we know; another one may be anything.
            if ledger.invites[token.id] != nil { event.invite = token.id }
            if ledger.grants[token.id] != nil { event.grant = token.id }
            event.detail = why
            var line = ChangeSet()
            line.events = [event]
            try commit(line)
        }
        return pause.map { .tooManyAttempts(retryAfter: $0) } ?? .refused
    }
}

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
