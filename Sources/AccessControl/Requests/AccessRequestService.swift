package import Model

/// Access requests of processes on this machine (RFC 8628): creation, answers and polls.
package struct AccessRequestService: Sendable {
    /// The state of an access request.
    package enum State: Sendable {
        /// Not answered yet. Poll again after this number of seconds.
        case waiting(seconds: Int)
        case denied
        case granted(Grant, Token)
    }

    /// Interval in seconds at which a requester polls its access request.
    package static let pollInterval = AccessRequestQueue.interval

    let store: AccessStore

    /// Access requests that wait for approval.
    package var pending: [AccessRequest] {
        get async { await store.transaction { store in store.requestQueue.pending(at: store.now()) } }
    }

    /// True if too many wrong codes were entered, until an owner reopens requests.
    package var areClosed: Bool { get async { await store.userCodeLimiter.isClosed } }

    /// Creates an access request for a process on this machine.
    ///
    /// - Parameters:
    ///   - spec: The requested access.
    ///   - caller: The requesting process, as reported by the kernel.
    ///   - isRunning: Returns whether that process still runs, based on its pid descriptor.
    /// - Returns: The request with the user code to show, and the secret handle to poll with.
    /// - Throws: `AccessError.limit`, `.requestsClosed`, `.tooWide`, `.outOfRange`.
    package func create(
        _ spec: AccessRequestSpec,
        by caller: AuditActor,
        isRunning: @escaping @Sendable () -> Bool = { true }
    ) async throws -> (AccessRequest, Token) {
        guard case .process(let uid, _, _) = caller else {
            throw AccessError.tooWide(
                "only a process on this machine can request access; from other machines use an invite"
            )
        }
        return try await store.transaction { store in
            guard !store.userCodeLimiter.isClosed else { throw AccessError.requestsClosed }
            try spec.check()
            let invite = InviteSpec(
                spec.permissions,
                lifetimeSeconds: AccessRequestQueue.lifetime,
                grantLifetimeSeconds: spec.lifetimeSeconds,
                user: spec.bearer == true ? nil : uid
            )
            let entry = try store.requestQueue.create(
                invite,
                named: spec.name,
                by: caller,
                of: .user(uid),
                at: store.now(),
                isRunning: isRunning
            )
            return (entry.request, entry.handle)
        }
    }

    /// Approves a request, or a part of it. The API has verified that the caller is an owner.
    ///
    /// - Parameters:
    ///   - code: The user code.
    ///   - limits: The part to approve.
    ///   - caller: The owner, for the audit log.
    ///   - source: The owner's connection.
    /// - Returns: The request, with the permissions that the owner has approved.
    /// - Throws: `AccessError.notFound` for a wrong code, which is counted; `.requestsClosed`; `.requesterExited`;
    ///   `.tooWide` for more than was asked.
    package func approve(
        _ code: String,
        limits: AccessRequestLimits = AccessRequestLimits(),
        by caller: AuditActor,
        from source: RequestSource
    ) async throws -> AccessRequest {
        try await store.transaction { store in
            let entry = try store.findRequest(code).limited(by: limits)
            guard entry.isRunning() else {
                store.requestQueue.remove(entry.request.userCode)
                throw AccessError.requesterExited(code: entry.request.userCode)
            }
            let spec = entry.inviteSpec
            var change = try store.state.invite(spec, as: entry.handle, by: caller, from: source, at: store.now())
            change.events = [
                AuditEvent(.approved, by: caller, from: source, invite: entry.handle.id, detail: entry.auditDetail)
            ]
            try store.commit(change)
            store.requestQueue.remove(entry.request.userCode)
            return entry.request
        }
    }

    /// Denies a request. The API has verified that the caller is an owner.
    package func deny(_ code: String, by caller: AuditActor, from source: RequestSource) async throws -> AccessRequest {
        try await store.transaction { store in
            let entry = try store.findRequest(code)
            try store.commit(ChangeSet([AuditEvent(.denied, by: caller, from: source, detail: entry.auditDetail)]))
            store.requestQueue.deny(entry.request.userCode)
            return entry.request
        }
    }

    /// Returns the state of a request. After an approval, redeems the handle and returns the grant.
    ///
    /// The device code is the secret handle that `create` returned.
    /// - Parameters:
    ///   - poll: The device code and the client.
    ///   - caller: The client, as far as the kernel identifies it, for the audit log.
    ///   - source: The connection.
    /// - Returns: The state, with the grant after an approval.
    /// - Throws: `AccessError.slowDown`, and the errors of `InviteService.redeem`.
    package func poll(
        _ poll: AccessRequestPoll,
        by caller: AuditActor,
        from source: RequestSource
    ) async throws -> State {
        guard let handle = try? Token(poll.deviceCode) else {
            throw try await store.rejectMalformedToken(from: source)
        }
        switch await store.transaction({ store in store.requestQueue.poll(handle, at: store.now()) }) {
        case .waiting: return .waiting(seconds: AccessRequestQueue.interval)
        case .denied: return .denied
        case .tooSoon(let interval): throw AccessError.slowDown(seconds: interval)
        case .unknown:
            let spec = RedemptionSpec(
                token: poll.deviceCode,
                client: poll.client,
                name: poll.name ?? SanitizedText("agent")
            )
            let (grant, token) = try await store.invites.redeem(spec, by: caller, from: source)
            return .granted(grant, token)
        }
    }

    /// Reopens requests after too many wrong codes.
    package func unlock() async throws {
        try await store.transaction { store in
            store.userCodeLimiter.reopen()
            try store.saveUserCodeLimiter()
        }
    }
}

extension AccessStore {
    /// Returns the request with a code. Counts a wrong code.
    fileprivate func findRequest(_ code: String) throws -> AccessRequestQueue.Entry {
        guard !userCodeLimiter.isClosed else { throw AccessError.requestsClosed }
        let now = now()
        if let entry = requestQueue.find(code, at: now) { return entry }
        userCodeLimiter.recordFailure(at: now)
        try saveUserCodeLimiter()
        throw AccessError.notFound("no pending request has that code; patchbay requests lists them")
    }
}

extension AccessRequestSpec {
    func check() throws(AccessError) {
        guard !(bearer == true && permissions.allow(.admin)) else {
            throw .tooWide("\(Scope.admin.rawValue) is never given to a bearer")
        }
        try InviteSpec(permissions, grantLifetimeSeconds: lifetimeSeconds).check()
    }
}
