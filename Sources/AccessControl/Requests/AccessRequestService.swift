package import FoundationEssentials
package import Model

extension AccessStore {
    /// The state of an access request.
    package enum RequestState: Sendable {
        /// Not answered yet. Poll again after this number of seconds.
        case waiting(seconds: Int)
        case denied
        case granted(Grant, Token)
    }

    /// Access requests that wait for approval.
    package var requests: [AccessRequest] { requestQueue.pending(at: now()) }

    /// Creates an access request for a process on this machine.
    ///
    /// - Parameters:
    ///   - terms: The requested access.
    ///   - caller: The requesting process, as reported by the kernel.
    ///   - isRunning: Returns whether that process still runs, based on its pid descriptor.
    /// - Returns: The request with the user code to show, and the secret handle to poll with.
    /// - Throws: `AccessError.limit`, `.requestsClosed`, `.tooWide`, `.outOfRange`.
    package func request(
        _ terms: AccessTerms,
        by caller: AuditActor,
        isRunning: @escaping @Sendable () -> Bool = { true }
    ) throws -> (AccessRequest, Token) {
        guard case .process(let uid, _, _) = caller else {
            throw AccessError.tooWide(
                "only a process on this machine can request access; from other machines use an invite"
            )
        }
        guard !userCodeLimiter.isClosed else { throw AccessError.requestsClosed }
        guard !(terms.isBearer && terms.permissions.allow(.admin)) else {
            throw AccessError.tooWide("\(Scope.admin.rawValue) is never given to a bearer")
        }
        try InviteTerms(terms.permissions, grantLifetime: terms.lifetime).check()
        let entry = try requestQueue.create(terms, by: caller, uid: uid, at: now(), isRunning: isRunning)
        return (entry.request, entry.handle)
    }

    /// Approves a request. The API has verified that the caller is an owner.
    ///
    /// - Throws: `AccessError.notFound` for a wrong code, which is counted; `.requestsClosed`; `.requesterExited`.
    package func approve(_ code: String, by caller: AuditActor, from source: RequestSource) throws -> AccessRequest {
        let entry = try findRequest(code)
        guard entry.isRunning() else {
            requestQueue.remove(entry.request.userCode)
            throw AccessError.requesterExited(code: entry.request.userCode)
        }
        let terms = InviteTerms(
            entry.terms.permissions,
            lifetime: AccessRequestQueue.lifetime,
            grantLifetime: entry.terms.lifetime,
            binding: entry.terms.isBearer ? .bearer : .user(entry.uid)
        )
        var change = try state.invite(terms, as: entry.handle, by: caller, from: source, at: now())
        var event = AuditEvent(.approved, by: caller, from: source)
        event.invite = entry.handle.id
        event.detail = Self.auditDetail(for: entry.request)
        change.events = [event]
        try commit(change)
        requestQueue.remove(entry.request.userCode)
        return entry.request
    }

    /// Denies a request. The API has verified that the caller is an owner.
    package func deny(_ code: String, by caller: AuditActor, from source: RequestSource) throws -> AccessRequest {
        let entry = try findRequest(code)
        var event = AuditEvent(.denied, by: caller, from: source)
        event.detail = Self.auditDetail(for: entry.request)
        var change = ChangeSet()
        change.events = [event]
        try commit(change)
        requestQueue.deny(entry.request.userCode)
        return entry.request
    }

    /// Returns the state of a request. After an approval, redeems the handle and returns the grant.
    ///
    /// `handle` is the token that `request` returned; `client` and `name` are as in `Redemption`.
    /// - Throws: `AccessError.slowDown`, and the errors of `redeem`.
    package func poll(_ handle: Token, client: Data, name: SanitizedText, from source: RequestSource) throws
        -> RequestState
    {
        switch requestQueue.poll(handle, at: now()) {
        case .waiting: return .waiting(seconds: AccessRequestQueue.interval)
        case .denied: return .denied
        case .tooSoon(let interval): throw AccessError.slowDown(seconds: interval)
        case .unknown:
            let (grant, token) = try redeem(handle, for: Redemption(client: client, name: name), from: source)
            return .granted(grant, token)
        }
    }

    /// Reopens requests after too many wrong codes.
    package func unlockRequests() throws {
        userCodeLimiter.reopen()
        try saveUserCodeLimiter()
    }

    private func findRequest(_ code: String) throws -> AccessRequestQueue.Entry {
        guard !userCodeLimiter.isClosed else { throw AccessError.requestsClosed }
        let now = now()
        if let entry = requestQueue.find(code, at: now) { return entry }
        userCodeLimiter.recordFailure(at: now)
        try saveUserCodeLimiter()
        throw AccessError.notFound("no pending request has that code; patchbay requests lists them")
    }

    private static func auditDetail(for request: AccessRequest) -> String {
        "asked by \(description(of: request.requester)) for \(description(of: request.permissions))"
    }

    private static func description(of caller: AuditActor) -> String {
        guard case .process(let uid, let pid, let executable) = caller else { return "?" }
        return "\(executable) (user \(uid), process \(pid))"
    }

    private static func description(of permissions: Permissions) -> String {
        permissions.scopes.sorted().map(\.rawValue).joined(separator: ", ")
    }
}

/// The access that a local process requests.
package struct AccessTerms: Sendable {
    package let permissions: Permissions
    package let name: SanitizedText
    /// True for a bearer grant, for a token that another user or program presents. False binds the grant to the
    /// requesting user.
    package let isBearer: Bool
    /// Lifetime of the grant in seconds: 1 second to 30 days.
    package let lifetime: Int

    package init(
        _ permissions: Permissions,
        name: SanitizedText,
        isBearer: Bool = false,
        lifetime: Int = 28_800
    ) {
        self.permissions = permissions
        // Limits the length, because owners read the name in tables next to what they approve.
        self.name = SanitizedText(name.text)
        self.isBearer = isBearer
        self.lifetime = lifetime
    }
}
