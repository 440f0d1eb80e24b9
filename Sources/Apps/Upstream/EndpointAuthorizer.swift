package import AccessControl
package import Model

/// Decides which routes and tokens a principal may use, and writes the audit log of calls.
package protocol EndpointAuthorizer: Sendable {
    /// Begins to observe the launch behind each approved route, so that a secret can be bound to it.
    func observe(_ endpoint: Endpoint) async

    /// Records the launches that accepted a secret which is not stored yet.
    func recordAcceptance(of secret: EndpointSecret, by endpoint: Endpoint, over routes: [AuthorizedRoute])

    /// Returns the routes to an endpoint that the principal may use now.
    func access(to endpoint: Endpoint, for principal: Principal) async -> AuthorizedRoutes

    /// The generation of all permissions. Read the value before `access(to:for:)` and pass it to `deliver`.
    var generation: UInt64 { get }

    /// Returns whether the principal's grant is valid now. Always true for an owner, because owners have no grant.
    func isLive(_ principal: Principal) -> Bool

    /// Runs a non-blocking write if no permission has ended or changed since the generation.
    ///
    /// - Returns: Nil if the write was not run.
    /// - Throws: The error of the write.
    func deliver<Value: Sendable, Failure: Error>(
        for principal: Principal,
        since generation: UInt64,
        _ write: () throws(Failure) -> Value
    ) throws(Failure) -> Value?

    /// Registers a handler for the end of the principal's grant; nil for a principal without a grant.
    ///
    /// - Throws: An error if the grant has ended.
    func register(for principal: Principal, onRevoke: @escaping @Sendable () -> Void) throws -> GrantSession?

    /// Unregisters a session that ended by itself.
    func unregister(_ session: GrantSession)

    /// Records whether an app accepted the token.
    func recordSecretResult(for endpoint: Endpoint, accepted: Bool) async

    /// Stores the secret that an app accepted in exchange for its former one, with a line in the audit log.
    func storeExchangedSecret(_ secret: EndpointSecret, of endpoint: Endpoint) async throws

    /// Writes a call to the audit log.
    func audit(_ event: EndpointCallEvent, by principal: Principal) async

    /// Streams the endpoints with a changed approval or token.
    func changes() async -> AsyncStream<EndpointID>
}

/// An `EndpointAuthorizer` that reads the permissions of an `AccessStore`.
package struct AccessStoreAuthorizer: EndpointAuthorizer {
    private let store: AccessStore

    package init(_ store: AccessStore) { self.store = store }

    package func observe(_ endpoint: Endpoint) async { await store.secrets.observe(endpoint) }

    package func recordAcceptance(of secret: EndpointSecret, by endpoint: Endpoint, over routes: [AuthorizedRoute]) {
        store.secrets.recordAcceptance(of: secret, by: endpoint, over: routes)
    }

    package func access(to endpoint: Endpoint, for principal: Principal) async -> AuthorizedRoutes {
        if store.secrets.isStored(for: endpoint) { await store.secrets.observe(endpoint) }
        let access = store.secrets.access(to: endpoint)
        return principal.may(.secretUse, on: endpoint) ? access : access.withoutSecrets
    }

    package var generation: UInt64 { store.live.generation }

    package func isLive(_ principal: Principal) -> Bool { principal.grant.map { store.live.isLive($0.id) } ?? true }

    package func deliver<Value: Sendable, Failure: Error>(
        for principal: Principal,
        since generation: UInt64,
        _ write: () throws(Failure) -> Value
    ) throws(Failure) -> Value? {
        try store.live.deliver(under: principal.grant?.id, since: generation, write)
    }

    package func register(for principal: Principal, onRevoke: @escaping @Sendable () -> Void) throws -> GrantSession? {
        try principal.grant.map { try store.live.register(under: $0.id) { onRevoke() } }
    }

    package func unregister(_ session: GrantSession) { store.live.unregister(session) }

    package func recordSecretResult(for endpoint: Endpoint, accepted: Bool) async {
        store.secrets.recordResult(for: endpoint, accepted: accepted)
        guard store.approvals.trust(of: endpoint.id).secret.contains(where: \.isForUnseen) else { return }
        // A failed write leaves the state unchanged; the next call confirms the token again.
        try? await store.secrets.confirm(of: endpoint, accepted: accepted)
    }

    package func storeExchangedSecret(_ secret: EndpointSecret, of endpoint: Endpoint) async throws {
        try await store.secrets.set(secret, of: endpoint, isExchanged: true, by: .broker, from: .broker)
    }

    package func audit(_ event: EndpointCallEvent, by principal: Principal) async {
        store.auditCall(event, by: principal.actor, from: principal.source)
    }

    package func changes() async -> AsyncStream<EndpointID> { store.approvals.changes() }
}
