package import FoundationEssentials
package import Model

extension AccessStore {
    /// How a request stands.
    package enum RequestState: Sendable {
        /// Nobody has answered; ask again after so many seconds.
        case waiting(seconds: Int)
        case denied
        case granted(Grant, Token)
    }

    /// What waits for a person's answer.
    package var requests: [AccessRequest] { desk.open(at: now()) }

    /// Asks for access, for a process on this machine.
    ///
    /// - Parameters:
    ///   - terms: What is wanted.
    ///   - caller: The process that asks, as the kernel says.
    ///   - isRunning: Whether that very process still runs (its pid descriptor knows).
    /// - Returns: The request with the code to show, and the handle to ask with how it stands; the handle is a secret.
    /// - Throws: `AccessError.limit`, `.requestsClosed`, `.tooWide`, `.outOfRange`.
    package func request(
        _ terms: AccessTerms,
        by caller: AuditActor,
        isRunning: @escaping @Sendable () -> Bool = { true }
    ) throws -> (AccessRequest, Token) {
        guard case .process(let uid, _, _) = caller else {
            throw AccessError.tooWide("only a process on this machine can ask; from elsewhere use an invite")
        }
        guard !gate.isClosed else { throw AccessError.requestsClosed }
        guard !(terms.isBearer && terms.permissions.allow(.admin)) else {
            throw AccessError.tooWide("\(Scope.admin.rawValue) is never given to a bearer")
        }
        try InviteTerms(terms.permissions, grantLifetime: terms.lifetime).check()
        let entry = try desk.ask(terms, by: caller, uid: uid, at: now(), isRunning: isRunning)
        return (entry.request, entry.handle)
    }

    /// A person's yes. The door has made sure that the caller is an owner.
    ///
    /// - Throws: `AccessError.notFound` for a wrong code, which counts; `.requestsClosed`; `.askerGone`.
    package func approve(_ code: String, by caller: AuditActor, from origin: RequestSource) throws -> AccessRequest {
        let entry = try answer(code)
        guard entry.isRunning() else {
            desk.close(entry.request.code)
            throw AccessError.askerGone(code: entry.request.code)
        }
        let terms = InviteTerms(
            entry.terms.permissions,
            lifetime: AccessRequestQueue.lifetime,
            grantLifetime: entry.terms.lifetime,
            binding: entry.terms.isBearer ? .bearer : .user(entry.uid)
        )
        var change = try ledger.invite(terms, as: entry.handle, by: caller, from: origin, at: now())
        var event = AuditEvent(.approved, by: caller, from: origin)
        event.invite = entry.handle.id
        event.detail =
            "asked by \(Self.words(for: entry.request.asker)) for \(Self.words(for: entry.request.permissions))"
        change.events = [event]
        try commit(change)
        desk.close(entry.request.code)
        return entry.request
    }

    /// A person's no.
    package func deny(_ code: String, by caller: AuditActor, from origin: RequestSource) throws -> AccessRequest {
        let entry = try answer(code)
        var event = AuditEvent(.denied, by: caller, from: origin)
        event.detail =
            "asked by \(Self.words(for: entry.request.asker)) for \(Self.words(for: entry.request.permissions))"
        var change = ChangeSet()
        change.events = [event]
        try commit(change)
        desk.deny(entry.request.code)
        return entry.request
    }

    /// How a request stands; after a yes this is where the grant is given.
    ///
    /// The handle is what `request` returned; client and name are as in `Redemption`.
    /// - Throws: `AccessError.slowDown`, and what `redeem` throws.
    package func poll(_ handle: Token, client: Data, name: SanitizedText, from origin: RequestSource) throws
        -> RequestState
    {
        switch desk.poll(handle, at: now()) {
        case .waiting: return .waiting(seconds: AccessRequestQueue.interval)
        case .denied: return .denied
        case .tooSoon(let interval): throw AccessError.slowDown(seconds: interval)
        case .unknown:
            let (grant, token) = try redeem(handle, for: Redemption(client: client, name: name), from: origin)
            return .granted(grant, token)
        }
    }

    /// Opens requests again after too many wrong codes.
    package func reopenRequests() throws {
        gate.reopen()
        try keepGate()
    }

    private func answer(_ code: String) throws -> AccessRequestQueue.Entry {
        guard !gate.isClosed else { throw AccessError.requestsClosed }
        let now = now()
        if let entry = desk.find(code, at: now) { return entry }
        gate.failed(at: now)
        try keepGate()
        throw AccessError.notFound("no request has that code, or it is over; patchbay requests shows those that wait")
    }

    private static func words(for caller: AuditActor) -> String {
        guard case .process(let uid, let pid, let executable) = caller else { return "?" }
        return "\(executable) (user \(uid), process \(pid))"
    }

    private static func words(for permissions: Permissions) -> String {
        permissions.scopes.sorted().map(\.rawValue).joined(separator: ", ")
    }
}

/// What a process on this machine asks for.
package struct AccessTerms: Sendable {
    package let permissions: Permissions
    package let name: SanitizedText
    /// To the user who asks, unless it needs a token for somebody else's door.
    package let isBearer: Bool
    /// Seconds that the grant is to live: 1 to 30 days.
    package let lifetime: Int

    package init(
        _ permissions: Permissions,
        name: SanitizedText,
        isBearer: Bool = false,
        lifetime: Int = 28_800
    ) {
        self.permissions = permissions
        // Owners read it in tables: a longer one would push out of sight what they have to decide about.
        self.name = SanitizedText(name.text)
        self.isBearer = isBearer
        self.lifetime = lifetime
    }
}
