package import Model

/// The authorization server of OAuth 2.1 for this broker's MCP servers, without HTTP.
///
/// An access token is the token of a grant, and the consent is an owner's approval of an access request. So the limits,
/// the audit log and the revocation are those of grants and of requests. `OAuthAttackTests` has a test for each threat.
///
/// | threat | defence |
/// |---|---|
/// | a client takes the name of another one | the name proves nothing; owners see the host of a document, the redirect, the code |
/// | a page opens the consent without its person (CSRF) | it only asks; an owner answers elsewhere, with the code of the page |
/// | clickjacking | the page has no button that decides, and no page may frame it |
/// | another browser takes the answer | only the page has the secret with which it asks for the answer, once |
/// | open redirect | exact redirect URIs, and no redirect before an owner's answer, not even for an error |
/// | a code is stolen, injected or used twice | 60 s, PKCE S256, client, URI and resource; a second use ends the grant |
/// | mix-up of servers | `iss` in each answer; the resource names this issuer |
/// | a token of one server at another | `Authenticator` compares the path, and the selector limits the endpoints |
/// | a refresh token is stolen | one use each; an old one ends the grant |
/// | a flood of registrations | nothing is stored |
/// | a flood of requests | 8 for each user and address, 64 from other machines, 5 minutes |
/// | guesses of user codes | 20 in an hour close all requests |
/// | documents that point inside (SSRF) | off by default; https to a public address, which is the one that was checked |
package struct OAuthService: Sendable {
    /// The state of an authorization, for its page.
    package enum Answer: Sendable {
        case waiting
        /// The URI to which the browser goes.
        case answered(String)
        /// No owner has answered in time, or the page was answered before.
        case expired
    }

    /// The scopes that a client may ask for, and those of a client that asks for none.
    package static let scopes = AuthorizationRequest.supportedScopes.sorted().map(\.rawValue)
    package static let defaultScopes = AuthorizationRequest.defaultScopes.sorted().map(\.rawValue)

    let store: AccessStore

    /// Registers a client (RFC 7591). Stores nothing.
    ///
    /// - Throws: `OAuthError`.
    package func register(name: String?, redirectURIs: [String]) throws(OAuthError) -> OAuthClient {
        try OAuthClient(name: name, redirectURIs: redirectURIs, keys: store.keys)
    }

    /// Creates the access request of an authorization.
    ///
    /// - Parameters:
    ///   - parameters: The query of the authorization request.
    ///   - issuer: The issuer to which it was sent.
    ///   - source: The browser's connection.
    ///   - user: The browser's user, if the kernel reports the user.
    ///   - documents: The documents of clients; nil if only registered clients may ask.
    /// - Returns: The access request, and the secret with which the page asks for the answer.
    /// - Throws: `OAuthError`, `AccessError.limit`, `.requestsClosed`.
    package func begin(
        _ parameters: [String: String],
        issuer: String,
        from source: RequestSource,
        user: UInt32?,
        documents: ClientMetadataCache? = nil
    ) async throws -> (AccessRequest, secret: String) {
        let (requester, browser) = Self.requester(source, user: user)
        let id = parameters["client_id"] ?? ""
        let client =
            if let documents, ClientMetadataURL.isOne(id) {
                try await documents.client(at: ClientMetadataURL(id), for: requester)
            } else {
                try OAuthClient(id: id, keys: store.keys)
            }
        let request = try AuthorizationRequest(parameters, of: client, issuer: issuer)
        return try await store.transaction { store in
            guard !store.userCodeLimiter.isClosed else { throw AccessError.requestsClosed }
            let now = store.now()
            // A page that is loaded again takes no second place.
            if let earlier = store.authorizations.remove(request, of: requester) { store.requestQueue.remove(earlier) }
            let isRemote = if case .remote = source { true } else { false }
            let invite = InviteSpec(
                request.permissions,
                use: isRemote ? .bearer : nil,
                lifetimeSeconds: AccessRequestQueue.lifetime,
                grantLifetimeSeconds: OAuthGrant.lifetime,
                grantIdleSeconds: OAuthGrant.idle
            )
            let entry = try store.requestQueue.create(
                invite,
                named: request.client.name,
                by: .anonymous,
                of: requester,
                authorization: RequestedAuthorization(
                    browser: browser,
                    origin: request.redirect.origin,
                    host: client.host,
                    resource: request.resource.text
                ),
                at: now
            )
            let secret = Base62.random128Bits()
            let page = OAuthAuthorizations.Page(
                request: request,
                requester: requester,
                userCode: entry.request.userCode,
                invite: entry.handle,
                // Longer than the request, so that an approval in its last second counts.
                expires: entry.expires + OAuthAuthorizations.codeLifetime
            )
            try store.authorizations.add(page, secret: secret, at: now)
            return (entry.request, secret)
        }
    }

    private static func requester(_ source: RequestSource, user: UInt32?) -> (AccessRequestQueue.Requester, String) {
        if case .remote(let address) = source { return (.address(address), "a browser at \(address)") }
        guard let user else { return (.address("this machine"), "a browser on this machine") }
        return (.user(user), "a browser of user \(user)")
    }

    /// Returns the state of an authorization. After an owner's answer, once, the URI with the answer for the client.
    ///
    /// - Throws: `AccessError.limit`.
    package func answer(for secret: String) async throws -> Answer {
        try await store.transaction { store in
            let now = store.now()
            guard let page = store.authorizations.page(secret, at: now) else { return .expired }
            switch store.requestQueue.state(of: page.userCode, at: now) {
            case .waiting, .tooSoon: return .waiting
            case .denied:
                store.authorizations.remove(secret)
                store.requestQueue.remove(page.userCode)
                return .answered(page.request.answer("error", OAuthError.Code.accessDenied.rawValue))
            case .unknown:
                guard let invite = store.state.invites[page.invite.id], invite.endReason == nil else { return .expired }
                let code = Base62.random128Bits()
                try store.authorizations.issue(code, for: page, secret: secret, at: now)
                return .answered(page.request.answer("code", code))
            }
        }
    }

    /// Gives tokens for a code or a refresh token (RFC 6749, sections 4.1.3 and 6).
    ///
    /// - Throws: `OAuthError`; `AccessError.tooManyAttempts`, `.limit`, `.notSaved`.
    package func tokens(for parameters: [String: String], from source: RequestSource) async throws -> OAuthTokens {
        guard let client = parameters["client_id"] else {
            throw OAuthError(.invalidClient, "the request needs the parameter client_id")
        }
        switch parameters["grant_type"] {
        case "authorization_code":
            return try await exchange(parameters["code"] ?? "", client: client, parameters, from: source)
        case "refresh_token":
            return try await renew(
                parameters["refresh_token"] ?? "",
                client: client,
                resource: parameters["resource"],
                from: source
            )
        default:
            throw OAuthError(.unsupportedGrantType, "grant_type is authorization_code or refresh_token")
        }
    }

    private func exchange(
        _ code: String,
        client: String,
        _ parameters: [String: String],
        from source: RequestSource
    ) async throws -> OAuthTokens {
        try await store.transaction { store in
            let now = store.now()
            switch store.authorizations.exchange(code, client: client, parameters: parameters, at: now) {
            case .refused(let reason): throw try store.rejectOAuth(reason, from: source, at: now)
            case .replayed(let grant):
                if let grant { try await store.endOAuth(grant, because: "its code was used twice", from: source) }
                throw try store.rejectOAuth("an authorization code that was used before", from: source, at: now)
            case .accepted(let request, let invite):
                let tokens = try store.redeem(invite, for: request, from: source, at: now)
                store.authorizations.record(grant: tokens.grant.id, from: code)
                return tokens
            }
        }
    }

    private func renew(_ text: String, client: String, resource: String?, from source: RequestSource) async throws
        -> OAuthTokens
    {
        try await store.transaction { store in
            let now = store.now()
            guard let token = try? Token(text) else {
                throw try store.rejectOAuth("not a token", from: source, at: now)
            }
            switch OAuthRenewal(state: store.state, source: source, now: now).renew(
                token,
                client: client,
                resource: resource
            ) {
            case .refused(let reason): throw try store.rejectOAuth(reason, of: token.id, from: source, at: now)
            case .replayed:
                try await store.endOAuth(token.id, because: "an old refresh token was used again", from: source)
                throw try store.rejectOAuth("a refresh token that was used before", of: token.id, from: source, at: now)
            case .renewed(let change, let access, let refresh):
                try store.commit(change)
                return OAuthTokens(access: access, refresh: refresh, grant: change.grants[0].grant(at: now))
            }
        }
    }

    /// Ends the grant of an access token or a refresh token (RFC 7009). An unknown token is no error.
    ///
    /// - Throws: `AccessError.tooManyAttempts`, `.notSaved`.
    package func revoke(_ text: String, from source: RequestSource) async throws {
        try await store.transaction { store in
            let now = store.now()
            guard let token = try? Token(text), store.state.grants[token.id]?.oauth != nil,
                store.state.isValid(token, from: source, at: now)
            else {
                guard let pause = store.attemptLimiter.recordFailure(from: source, at: now) else { return }
                throw AccessError.tooManyAttempts(retryAfter: pause)
            }
            let change = try store.state.revoke(.one(token.id), by: .grant(token.id), from: source, at: now)
            try await store.endAndCommit(change)
        }
    }
}

extension AccessStore {
    /// Creates the grant of an approved request, which spends the invite of the approval.
    fileprivate func redeem(
        _ invite: Token,
        for request: AuthorizationRequest,
        from source: RequestSource,
        at now: MonotonicTime
    ) throws -> OAuthTokens {
        let evaluator = InviteRedemptionEvaluator(state: state, keys: keys, source: source, key: nil, now: now)
        let spec = RedemptionSpec(token: invite.reveal(), client: request.challenge, name: request.client.name)
        guard case .granted(var change, var grant, let access) = try evaluator.redeem(invite, for: spec) else {
            throw try rejectOAuth("an approval that has ended", from: source, at: now)
        }
        var random = SystemRandomNumberGenerator()
        let letters = Base62.random(count: Token.Kind.refresh.secretLength, from: &random)
        let refresh = Token(.refresh, id: grant.id, secret: letters)
        grant.oauth = OAuthGrant(request, refresh: refresh, at: now)
        change.grants = [grant]
        try commit(change)
        return OAuthTokens(access: access, refresh: refresh, grant: grant.grant(at: now))
    }

    /// Ends a grant whose code or refresh token was shown twice.
    fileprivate func endOAuth(_ grant: String, because reason: String, from source: RequestSource) async throws {
        guard var change = try? state.revoke(.one(grant), by: .broker, from: source, at: now()) else { return }
        for index in change.events.indices {
            change.events[index].detail = reason
            change.events[index].alert = true
        }
        try await endAndCommit(change)
    }

    /// Counts a wrong code or refresh token like a wrong token. The client does not learn the reason.
    ///
    /// - Returns: The error to throw.
    fileprivate func rejectOAuth(
        _ reason: String,
        of grant: String? = nil,
        from source: RequestSource,
        at now: MonotonicTime
    ) throws -> any Error {
        if let pause = attemptLimiter.recordFailure(from: source, at: now) {
            return AccessError.tooManyAttempts(retryAfter: pause)
        }
        // Records only IDs that exist; an unknown ID may be arbitrary text.
        let known = grant.flatMap { state.grants[$0]?.id }
        try commit(ChangeSet([AuditEvent(.refused, by: .anonymous, from: source, grant: known, detail: reason)]))
        return OAuthError(
            .invalidGrant,
            "the code or the refresh token is wrong, used, expired or revoked; let the client ask for access again"
        )
    }
}
