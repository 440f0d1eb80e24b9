import FoundationEssentials
package import Model
import Synchronization

/// Secrets of endpoints: sealed, and each sent only over the routes and to the launches that it was given for.
package struct EndpointSecretService: Sendable {
    let store: AccessStore

    /// IDs of the endpoints with a stored secret.
    package var holders: [EndpointID] { get async { await store.state.secrets.keys.sorted() } }

    /// Seals and saves an endpoint's secret for its approved routes and their launch of the app.
    ///
    /// `port` is the port that the app reports, because the broker may not have discovered that launch yet. With
    /// `isForUnseen`, the secret also applies to the first other launch that accepts it over the same route
    /// (`confirm`). The caller sets `isForUnseen` when the app names no port and could not be queried. With `route`, the
    /// secret is for this route alone.
    /// - Throws: `AccessError.secretNotPresentable` when no route is approved, `.notSaved`.
    package func set(
        _ secret: EndpointSecret,
        of endpoint: Endpoint,
        over route: Route? = nil,
        on port: UInt16? = nil,
        isForUnseen: Bool = false,
        by caller: AuditActor,
        from source: RequestSource
    ) async throws {
        var endpoint = endpoint
        if let route { endpoint.routes.removeAll { $0.route != route } }
        try await store.transaction { [endpoint] store in
            let bindings = try Self.bindings(
                of: endpoint,
                store.state.approvals[endpoint.id],
                on: port,
                isForUnseen: isForUnseen
            )
            let origins = Set(bindings.map(\.origin)).sorted().joined(separator: ", ")
            var change = ChangeSet([
                AuditEvent(.secretSet, by: caller, from: source, endpoint: endpoint.id, detail: "for \(origins)")
            ])
            change.secrets = [try SecretRecord(sealing: secret, of: endpoint.id, for: bindings, store.keys)]
            try store.commit(change)
        }
    }

    /// Returns the routes and launches that a new secret is for.
    private static func bindings(
        of endpoint: Endpoint,
        _ approval: Approval?,
        on port: UInt16?,
        isForUnseen: Bool
    ) throws(AccessError) -> [EndpointTrust.SecretBinding] {
        if let refusal = ApprovalPolicy.refusal(of: endpoint, approval) {
            throw .secretNotPresentable(endpoint: endpoint.id, why: "\(refusal.detail): \(refusal.hint)")
        }
        var bindings: [EndpointTrust.SecretBinding] = []
        for route in ApprovalPolicy.approvedRoutes(of: endpoint, approval) {
            guard let binding = ApprovalPolicy.secretBinding(for: route, approval) else { continue }
            bindings.append(binding)
            if isForUnseen { bindings.append(binding.next) }
            if route.launchID == nil, let port {
                bindings.append(.init(origin: binding.origin, launch: EndpointRoute.launch(atPort: port)))
            }
        }
        if endpoint.routes.isEmpty, let approval, port != nil || isForUnseen {
            bindings = ApprovalPolicy.secretBindings(at: port, approval)
        }
        guard !bindings.isEmpty else {
            throw .secretNotPresentable(
                endpoint: endpoint.id,
                why: "it is unavailable and has no approved network address; set the secret when it is available"
            )
        }
        return bindings
    }

    /// Returns the secret to send to an endpoint over one of its routes; nil when none is stored. Do not send the
    /// secret over another route.
    ///
    /// - Throws: `AccessError.secretNotPresentable` when a stored secret must not be sent over this route.
    package func secret(of endpoint: Endpoint, over route: EndpointRoute) throws(AccessError) -> EndpointSecret? {
        let (approval, record) = stored(for: endpoint)
        return try secret(in: record, of: endpoint, over: route, approval)
    }

    /// Returns the approved routes to an endpoint, with the secret for each, to a client who reads the secret.
    ///
    /// - Throws: `AccessError.notSaved` if the audit log cannot record the access.
    package func read(of endpoint: Endpoint, by caller: AuditActor, from source: RequestSource) async throws
        -> EndpointAccess
    {
        let access = access(to: endpoint)
        guard access.hasSecret else { return access }
        try await store.transaction { store in
            let event = AuditEvent(.secretRead, by: caller, from: source, endpoint: endpoint.id)
            try store.commit(ChangeSet([event]))
        }
        return access
    }

    /// Returns the approved routes to an endpoint, with the secret for each.
    package func access(to endpoint: Endpoint) -> EndpointAccess {
        let (approval, record) = stored(for: endpoint)
        let routes = ApprovalPolicy.approvedRoutes(of: endpoint, approval)
        // A stored secret that must not be sent is an error. Only callers that set secrets need its reason.
        let authorized = routes.map {
            AuthorizedRoute($0.route, secret: try? secret(in: record, of: endpoint, over: $0, approval))
        }
        return EndpointAccess(
            authorized,
            isUnapproved: routes.isEmpty && !endpoint.routes.isEmpty,
            isSecretOutdated: record != nil && authorized.allSatisfy { $0.secret == nil }
        )
    }

    /// Returns an endpoint's approval and secret, read in one step.
    private func stored(for endpoint: Endpoint) -> (Approval?, SecretRecord?) {
        store.live.content.withLock { ($0.state.approvals[endpoint.id], $0.state.secrets[endpoint.id]) }
    }

    private func secret(
        in record: SecretRecord?,
        of endpoint: Endpoint,
        over route: EndpointRoute,
        _ approval: Approval?
    ) throws(AccessError) -> EndpointSecret? {
        guard let record else { return nil }
        let id = endpoint.id
        func refusal(_ why: String) -> AccessError { .secretNotPresentable(endpoint: id, why: why) }
        guard endpoint.routes.contains(where: { $0.route == route.route }) else {
            throw refusal("it was not discovered at \(route)")
        }
        switch ApprovalPolicy.decision(on: route, approval) {
        case .approved: break
        case .pending:
            let command = ApprovalPolicy.command(toApprove: route, of: id)
            throw refusal("no owner approved \(route); first: \(command)")
        case .changed(let why):
            let command = ApprovalPolicy.command(toApprove: route, of: id)
            throw refusal("\(why); if that is correct: \(command)")
        }
        guard let binding = ApprovalPolicy.secretBinding(for: route, approval),
            record.bindings.contains(where: { $0.origin == binding.origin })
        else {
            throw refusal("it was set for another route than \(route); set it again: patchbay secret set \(id)")
        }
        guard record.bindings.contains(where: { $0.covers(binding) }) else {
            throw refusal("the app was restarted since; set the new secret: patchbay secret set \(id)")
        }
        do { return try store.keys.open(record) } catch {
            throw refusal("the stored secret is damaged; set it again: patchbay secret set \(id)")
        }
    }

    /// Returns true if a secret is stored for this launch on an approved route and not rejected by the app.
    package func isUsable(for endpoint: Endpoint) -> Bool {
        let (trust, isRejected) = store.live.content.withLock { content in
            let sealed = content.state.secrets[endpoint.id]?.sealed
            return (content.state.trust(of: endpoint.id), sealed != nil && sealed == content.rejected[endpoint.id])
        }
        return !isRejected && endpoint.routes.contains { ApprovalPolicy.maySendSecret(over: $0, trust) }
    }

    /// Records whether an app accepted its secret. A rejected secret is still sent, because the app may be shutting
    /// down or starting. `isUsable` returns false until the app accepts the secret or a new one is set.
    package func recordResult(for endpoint: EndpointID, accepted: Bool) {
        store.live.content.withLock { content in
            content.rejected[endpoint] = accepted ? nil : content.state.secrets[endpoint]?.sealed
        }
    }

    /// Binds a secret that was given for an unseen launch. If accepted, the secret is bound to the launch that accepted
    /// it; otherwise only to the known launches.
    ///
    /// A known launch that is shutting down may reject the secret. That rejection changes nothing.
    package func confirm(of endpoint: Endpoint, accepted: Bool) async throws {
        try await store.transaction { store in
            let (approval, record) = stored(for: endpoint)
            guard let record, record.bindings.contains(where: \.isForUnseen) else { return }
            let seen = record.bindings.filter { !$0.isForUnseen }
            let current = ApprovalPolicy.approvedRoutes(of: endpoint, approval)
                .compactMap { ApprovalPolicy.secretBinding(for: $0, approval) }
                .filter { now in record.bindings.contains { $0.covers(now) } }
            guard accepted ? !current.isEmpty : !current.allSatisfy(seen.contains) else { return }
            let detail = accepted ? "for the launch that accepted it" : "for no later launch: the app rejected it"
            var change = ChangeSet([
                AuditEvent(.secretSet, by: .broker, from: .broker, endpoint: endpoint.id, detail: detail)
            ])
            let secret = try store.keys.open(record)
            let bindings = accepted ? current : seen
            change.secrets = [try SecretRecord(sealing: secret, of: endpoint.id, for: bindings, store.keys)]
            try store.commit(change)
        }
    }

    /// Deletes an endpoint's secret.
    ///
    /// - Returns: False when there was none.
    /// - Throws: `AccessError.notSaved`.
    @discardableResult
    package func delete(of endpoint: EndpointID, by caller: AuditActor, from source: RequestSource) async throws
        -> Bool
    {
        try await store.transaction { store in
            guard store.state.secrets[endpoint] != nil else { return false }
            var change = ChangeSet([AuditEvent(.secretForgotten, by: caller, from: source, endpoint: endpoint)])
            change.removedSecrets = [endpoint]
            try store.commit(change)
            return true
        }
    }
}
