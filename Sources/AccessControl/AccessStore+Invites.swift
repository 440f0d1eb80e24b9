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
