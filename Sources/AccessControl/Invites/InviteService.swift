package import Model

/// Invites: the list, creation and redemption.
package struct InviteService: Sendable {
    let store: AccessStore

    /// Every invite, newest first, including those that ended in the last day.
    package var list: [Invite] {
        get async { await store.state.invites.values.sorted { $0.createdAt > $1.createdAt }.map(\.invite) }
    }

    /// True if another machine can redeem an invite now.
    package var isOpenForOthers: Bool {
        get async {
            await store.state.invites.values.contains { $0.endReason == nil && $0.use ?? .local != .local }
        }
    }

    /// Subscribes to the creation and the end of invites.
    package func changes() -> AsyncStream<Void> { store.inviteChangeSubscribers.subscribe() }

    /// Creates an invite. The API has verified that the caller is an owner or holds the named grant.
    ///
    /// - Throws: `AccessError.tooWide`, `.outOfRange`, `.limit`, `.refused` when the grant has ended, `.notSaved`.
    package func create(_ spec: InviteSpec, by caller: AuditActor, from source: RequestSource) async throws -> (
        Invite, Token
    ) {
        try await store.transaction { store in
            var token = Token(random: .invite)
            while store.state.invites[token.id] != nil { token = Token(random: .invite) }
            let change = try store.state.invite(spec, as: token, by: caller, from: source, at: store.now())
            try store.commit(change)
            return (change.invites[0].invite, token)
        }
    }

    /// Redeems an invite for a grant. The same client gets the same grant again within 60 seconds. A grant that is bound
    /// to a key replaces the earlier grants of the key.
    ///
    /// - Parameters:
    ///   - spec: The invite and the client.
    ///   - caller: The client, as far as the kernel or a grant identifies it.
    ///   - source: The connection.
    ///   - key: The TLS key that a remote client proved to hold.
    /// - Returns: The grant with its token. The token of a grant that is bound to a key is not accepted anywhere.
    /// - Throws: `AccessError.refused`, the same for every reason; `.inviteEnded` if the secret is right;
    ///   `.tooManyAttempts`; `.tooWide`, `.keyRequired`, `.appRequired` and `.notSaved`, after which the invite is unspent.
    package func redeem(
        _ spec: RedemptionSpec,
        by caller: AuditActor = .anonymous,
        from source: RequestSource,
        key: KeyPin? = nil
    ) async throws -> (Grant, Token) {
        guard let invite = try? Token(spec.token) else { throw try await store.rejectMalformedToken(from: source) }
        try spec.check()
        return try await store.transaction { store in
            let now = store.now()
            let evaluator = InviteRedemptionEvaluator(
                state: store.state,
                keys: store.keys,
                source: source,
                caller: caller,
                key: key,
                now: now
            )
            switch try evaluator.redeem(invite, for: spec) {
            case .granted(let change, let grant, let token):
                if case .key(let pin) = grant.binding { try await store.endGrants(boundTo: pin, from: source, at: now) }
                do { try store.commit(change) } catch is AccessDatabase.Conflict { throw AccessError.refused }
                return (grant.grant(at: now), token)
            case .again(let grant, let token):
                return (grant.grant(at: now), token)
            case .refused(let why, let change):
                throw try store.reject(invite, because: why, saving: change, from: source, at: now)
            case .ended(let end):
                let error = try store.reject(invite, because: end, from: source, at: now)
                throw error == .refused ? .inviteEnded(end) : error
            }
        }
    }
}

extension AccessStore {
    /// Ends the grants of a client that joins again, before its new grant is saved.
    ///
    /// A key has one valid grant. Otherwise the revocation of the newest grant would bring an earlier one back.
    fileprivate func endGrants(boundTo key: KeyPin, from source: RequestSource, at now: MonotonicTime) async throws {
        for grant in state.grantRecords(boundTo: key) where grant.endReason(at: now) == nil {
            var change = try state.revoke(.one(grant.id), by: .broker, from: source, at: now)
            for index in change.events.indices { change.events[index].detail = "the client joins again" }
            try await endAndCommit(change)
        }
    }
}

/// The limits and defaults of invites.
extension InviteSpec {
    /// Default lifetime of an invite in seconds (10 minutes).
    static let defaultLifetime = 600
    /// Default lifetime of a grant in seconds (8 hours; 30 days for a device).
    var defaultGrantLifetime: Int { use == .device ? Self.grantLifetimes.upperBound : 28_800 }
    /// Default idle timeout of a grant in seconds (2 hours; 30 days for a device).
    var defaultGrantIdle: Int { use == .device ? Self.grantLifetimes.upperBound : 7_200 }
    /// True if clients at the remote listener may redeem the invite.
    var isForOtherMachines: Bool { (use ?? .local) != .local }

    func check() throws(AccessError) {
        guard Self.allowedUses.contains(maxUses ?? 1) else {
            throw .outOfRange("an invite can be redeemed 1 to 100 times")
        }
        guard Self.lifetimes.contains(lifetimeSeconds ?? Self.defaultLifetime) else {
            throw .outOfRange("the lifetime of an invite is 1 second to 24 hours")
        }
        guard Self.grantLifetimes.contains(grantLifetimeSeconds ?? defaultGrantLifetime),
            Self.grantLifetimes.contains(grantIdleSeconds ?? defaultGrantIdle)
        else { throw .outOfRange("the lifetime and idle timeout of a grant are 1 second to 30 days") }
        guard !permissions.scopes.isEmpty else { throw .outOfRange("an invite needs at least one scope") }
        if case .bundles(let bundles) = permissions.selector, bundles.contains("") {
            throw .outOfRange("a bundle identifier must not be empty")
        }
        guard maxUses ?? 1 == 1 || !permissions.allow(.admin) else {
            throw .tooWide("an invite with several uses cannot give \(Scope.admin.rawValue)")
        }
        try permissions.checkTools()
        if isForOtherMachines { try checkForOtherMachines() }
    }

    private func checkForOtherMachines() throws(AccessError) {
        if let scope = permissions.scopes.sorted().first(where: \.isLocalOnly) {
            throw .tooWide("\(scope.rawValue) is not available to other machines; leave out the scope")
        }
        guard user == nil else {
            throw .outOfRange("an invite for a user of this machine cannot be for other machines")
        }
        guard use != .device || permissions == Permissions([.endpointRegister], on: .all) else {
            throw .tooWide("an invite for a device gives only \(Scope.endpointRegister.rawValue), on all endpoints")
        }
    }
}

extension Permissions {
    /// Allowed numbers of tool names in a limit to named tools.
    static let allowedToolCounts = 1...100
    /// Allowed lengths of a tool name in bytes. MCP recommends at most 128.
    static let allowedToolNameLengths = 1...256

    /// Throws unless the limit to certain tools is possible, and no scope would bypass the limit.
    func checkTools() throws(AccessError) {
        if case .named(let names) = tools {
            guard Self.allowedToolCounts.contains(names.count),
                names.allSatisfy({ Self.allowedToolNameLengths.contains($0.utf8.count) })
            else { throw .outOfRange("a limit to named tools has 1 to 100 names, each of 1 to 256 bytes") }
        }
        if let exclusion = scopes.sorted().lazy.compactMap(exclusion).first {
            throw .tooWide("\(exclusion); leave out the scope or the limit")
        }
    }
}

extension RedemptionSpec {
    func check() throws(AccessError) {
        guard (16...1_024).contains(client.utf8.count) else {
            throw .outOfRange("a client key has 16 to 1,024 bytes; use 32 random letters and digits")
        }
    }
}
