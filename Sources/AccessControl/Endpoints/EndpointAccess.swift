import FoundationEssentials
import Logging
package import Model
import Synchronization

extension AccessStore {
    /// Every approval, sorted by endpoint ID.
    package var approvals: [Approval] { state.approvals.values.sorted { $0.endpoint < $1.endpoint } }

    package func approval(of endpoint: EndpointID) -> Approval? { state.approvals[endpoint] }

    /// Approval and secret bindings of every endpoint that has an approval or a secret.
    package var trusts: [EndpointID: EndpointTrust] {
        let ids = Set(state.approvals.keys).union(state.secrets.keys)
        return Dictionary(uniqueKeysWithValues: ids.map { ($0, trust(of: $0)) })
    }

    /// Returns the approval and the secret bindings of an endpoint.
    package nonisolated func trust(of endpoint: EndpointID) -> EndpointTrust {
        sharedState.withLock { shared in
            EndpointTrust(
                approval: shared.state.approvals[endpoint],
                secret: shared.state.secrets[endpoint]?.bindings ?? []
            )
        }
    }

    /// Approves one network address of an endpoint. The API has verified that the caller is an owner.
    ///
    /// Earlier approved addresses stay approved while host and app are the same. Otherwise the approval is new, and a
    /// secret that was given only under the earlier approval is deleted. `address` is a current address of the
    /// endpoint; nil selects its preferred network address. `port` is required for a port below 1024.
    /// - Throws: `AccessError.notFound` when the endpoint is not at that address now, `.outOfRange` when the port has
    ///   to be named.
    @discardableResult
    package func approve(
        _ endpoint: Endpoint,
        at address: String? = nil,
        port: UInt16? = nil,
        by caller: AuditActor,
        from source: RequestSource
    ) throws -> Approval {
        let network = endpoint.routes.compactMap { route -> (NetworkRoute, EndpointRoute)? in
            if case .network(let candidate) = route.route, candidate.host != nil { (candidate, route) } else { nil }
        }
        guard let (first, route) = network.first(where: { address == nil || $0.0.address == address }),
            let host = first.host
        else {
            throw AccessError.notFound(Self.nothingToApprove(endpoint, at: address, known: network.map(\.0.address)))
        }
        if first.port < ApprovalPolicy.firstUserPort, port != first.port {
            throw AccessError.outOfRange(
                "port \(first.port) belongs to a system service; name the port if you mean it: "
                    + ApprovalPolicy.command(toApprove: route, of: endpoint.id)
            )
        }
        let earlier = state.approvals[endpoint.id]
        let stays = earlier.map { $0.host == host && $0.app == route.app } ?? false
        // One advertisement may list the same address on several interfaces; each is approved separately.
        let added = Approval.Address(first)
        let remaining = (stays ? earlier?.addresses ?? [] : []).filter { $0 != added }
        let approval = Approval(
            id: (stays ? earlier?.id : nil) ?? Token(random: .invite).id,
            endpoint: endpoint.id,
            approvedBy: caller,
            approvedAt: now().date,
            app: route.app,
            host: host,
            addresses: remaining + [added],
            port: port ?? (stays ? earlier?.port : nil)
        )
        var event = AuditEvent(.endpointApproved, by: caller, from: source)
        event.endpoint = endpoint.id
        event.detail = "\(route.app) on \(host) at \(route)"
        var change = ChangeSet()
        change.approvals = [approval]
        let bindings = state.secrets[endpoint.id]?.bindings ?? []
        if !stays, bindings.allSatisfy({ $0.origin.hasPrefix("approval ") }) { change.removedSecrets = [endpoint.id] }
        change.events = [event]
        try commit(change)
        return approval
    }

    private static func nothingToApprove(_ endpoint: Endpoint, at address: String?, known: [String]) -> String {
        if let address, !known.isEmpty {
            return "\(endpoint.id) is not at \(SanitizedText(address)) now, but at \(known.joined(separator: ", "))"
        }
        if known.isEmpty, endpoint.approval == .approved, !endpoint.routes.isEmpty {
            return "\(endpoint.id) has no network address; its cable or its configuration needs no approval"
        }
        return "\(endpoint.id) has no reachable address now; approve it when it is available"
    }

    /// Revokes the approval of an endpoint's network addresses and deletes its secret.
    ///
    /// - Throws: `AccessError.notSaved`, after which the approval stays revoked until the broker stops.
    package func revokeApproval(of endpoint: EndpointID, by caller: AuditActor, from source: RequestSource)
        async throws
    {
        guard state.approvals[endpoint] != nil || state.secrets[endpoint] != nil else { return }
        var event = AuditEvent(.approvalWithdrawn, by: caller, from: source)
        event.endpoint = endpoint
        var change = ChangeSet()
        change.removedApprovals = [endpoint]
        change.removedSecrets = [endpoint]
        change.events = [event]
        try await endAndCommit(change)
    }

    /// Seals and saves an endpoint's secret for its approved routes and their launch of the app.
    ///
    /// `port` is the port that the app reports, because the broker may not have discovered that launch yet. With
    /// `isForUnseen`, the secret also applies to the first other launch that accepts it over the same route
    /// (`confirmSecret`). The caller sets `isForUnseen` when the app names no port and could not be queried.
    /// - Throws: `AccessError.secretNotPresentable` when no route is approved, `.notSaved`.
    package func setSecret(
        _ secret: EndpointSecret,
        of endpoint: Endpoint,
        on port: UInt16? = nil,
        isForUnseen: Bool = false,
        by caller: AuditActor,
        from source: RequestSource
    ) throws {
        let approval = state.approvals[endpoint.id]
        if let refusal = ApprovalPolicy.refusal(of: endpoint, approval) {
            throw AccessError.secretNotPresentable(endpoint: endpoint.id, why: refusal.detail)
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
            throw AccessError.secretNotPresentable(
                endpoint: endpoint.id,
                why: "it is unavailable and has no approved network address; set the secret when it is available"
            )
        }
        let record = try sealed(secret, of: endpoint.id, for: bindings)
        var event = AuditEvent(.secretSet, by: caller, from: source)
        event.endpoint = endpoint.id
        event.detail = "for " + Set(bindings.map(\.origin)).sorted().joined(separator: ", ")
        var change = ChangeSet()
        change.secrets = [record]
        change.events = [event]
        try commit(change)
    }

    /// Returns the secret to send to an endpoint over one of its routes; nil when none is stored. Do not send the
    /// secret over another route.
    ///
    /// - Throws: `AccessError.secretNotPresentable` when a stored secret must not be sent over this route.
    package func secret(of endpoint: Endpoint, over route: EndpointRoute) throws -> EndpointSecret? {
        let (approval, record) = storedApproval(of: endpoint)
        return try secret(in: record, of: endpoint, over: route, approval)
    }

    /// Returns an endpoint's approval and secret, read in one step.
    nonisolated func storedApproval(of endpoint: Endpoint) -> (Approval?, SecretRecord?) {
        sharedState.withLock { ($0.state.approvals[endpoint.id], $0.state.secrets[endpoint.id]) }
    }

    nonisolated func secret(
        in record: SecretRecord?,
        of endpoint: Endpoint,
        over route: EndpointRoute,
        _ approval: Approval?
    ) throws -> EndpointSecret? {
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
        do { return try keys.open(record) } catch {
            throw refusal("the stored secret is damaged; set it again: patchbay secret set \(id)")
        }
    }

    /// Returns true if a secret is stored for this launch on an approved route and not rejected by the app.
    package func holdsSecret(of endpoint: Endpoint) -> Bool {
        let (trust, isRejected) = sharedState.withLock { shared in
            let record = shared.state.secrets[endpoint.id]
            let trust = EndpointTrust(
                approval: shared.state.approvals[endpoint.id],
                secret: record?.bindings ?? []
            )
            return (trust, record.map { $0.sealed == shared.rejected[endpoint.id] } ?? false)
        }
        return !isRejected && endpoint.routes.contains { ApprovalPolicy.maySendSecret(over: $0, trust) }
    }

    /// Records whether an app accepted its secret. A rejected secret is still sent, because the app may be shutting
    /// down or starting. `holdsSecret` returns false until the app accepts the secret or a new one is set.
    package nonisolated func recordSecretResult(for endpoint: EndpointID, accepted: Bool) {
        sharedState.withLock { $0.rejected[endpoint] = accepted ? nil : $0.state.secrets[endpoint]?.sealed }
    }

    /// Binds a secret that was given for an unseen launch. If accepted, the secret is bound to the launch that accepted
    /// it; otherwise only to the known launches.
    ///
    /// A known launch that is shutting down may reject the secret. That rejection changes nothing.
    package func confirmSecret(of endpoint: Endpoint, accepted: Bool) throws {
        let (approval, record) = storedApproval(of: endpoint)
        guard let record, record.bindings.contains(where: \.isForUnseen) else { return }
        let seen = record.bindings.filter { !$0.isForUnseen }
        let current = ApprovalPolicy.approvedRoutes(of: endpoint, approval)
            .compactMap { ApprovalPolicy.secretBinding(for: $0, approval) }
            .filter { now in record.bindings.contains { $0.covers(now) } }
        guard accepted ? !current.isEmpty : !current.allSatisfy(seen.contains) else { return }
        var change = ChangeSet()
        change.secrets = [try sealed(try keys.open(record), of: endpoint.id, for: accepted ? current : seen)]
        var event = AuditEvent(.secretSet, by: .broker, from: .broker)
        event.endpoint = endpoint.id
        event.detail = accepted ? "for the launch that accepted it" : "for no later launch: the app rejected it"
        change.events = [event]
        try commit(change)
    }

    private func sealed(
        _ secret: EndpointSecret,
        of endpoint: EndpointID,
        for bindings: [EndpointTrust.SecretBinding]
    ) throws -> SecretRecord {
        let bindings = Set(bindings).sorted { ($0.origin, $0.launch) < ($1.origin, $1.launch) }
        let context = SecretRecord.context(endpoint: endpoint, bindings: bindings)
        return SecretRecord(
            endpoint: endpoint,
            bindings: bindings,
            sealed: try keys.seal(secret, context: context),
            setAt: now()
        )
    }

    /// IDs of the endpoints with a stored secret.
    package var secretHolders: [EndpointID] { state.secrets.keys.sorted() }

    /// Deletes an endpoint's secret.
    ///
    /// - Returns: False when there was none.
    /// - Throws: `AccessError.notSaved`.
    @discardableResult
    package func deleteSecret(of endpoint: EndpointID, by caller: AuditActor, from source: RequestSource) throws -> Bool
    {
        guard state.secrets[endpoint] != nil else { return false }
        var event = AuditEvent(.secretForgotten, by: caller, from: source)
        event.endpoint = endpoint
        var change = ChangeSet()
        change.removedSecrets = [endpoint]
        change.events = [event]
        try commit(change)
        return true
    }
}

/// Access checks and audit events for calls of endpoints.
extension AccessStore {
    /// Maximum delay of a call's audit entry. Writing each entry separately would delay a call by several milliseconds
    /// (fsync(2)).
    static let auditFlushInterval: Duration = .seconds(1)

    /// Returns the approved routes to an endpoint, with the secret for each.
    package nonisolated func access(to endpoint: Endpoint) -> EndpointAccess {
        let (approval, record) = storedApproval(of: endpoint)
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

    /// Records a call of an endpoint in the audit log, within one second and before an orderly shutdown.
    ///
    /// Does not wait for the store's thread, which may be blocked on the disk. A crash may lose the entries of the last
    /// second; nothing else depends on them.
    package nonisolated func auditCall(_ call: EndpointCallEvent, by caller: AuditActor, from source: RequestSource) {
        var event = AuditEvent(.called, by: caller, from: source)
        event.endpoint = call.endpoint
        event.subject = call.subject
        event.bytes = call.bytes
        event.detail = call.outcome
        guard !auditBuffer.append(event) else { return }
        logger.error(
            "an endpoint call was dropped from the audit log: the buffer is full",
            metadata: ["endpoint": "\(call.endpoint)"]
        )
    }

    /// Subscribes to changes of approvals and secrets. A slow subscriber misses some changes, but always gets a later
    /// one.
    package func approvalChanges() -> AsyncStream<EndpointID> { approvalChangeSubscribers.subscribe() }

    func publishApprovalChange(_ change: ChangeSet) {
        let touched =
            change.approvals.map(\.endpoint) + change.secrets.map(\.endpoint) + change.removedApprovals
            + change.removedSecrets
        for id in Set(touched) { approvalChangeSubscribers.send(id) }
    }
}

/// Routes and secrets that a caller may use for an endpoint, all looked up in one step.
package struct EndpointAccess: Sendable {
    /// The approved routes in the endpoint's order; empty when none is approved.
    package let routes: [AuthorizedRoute]
    /// True if the endpoint has routes and none of them is approved.
    package let isUnapproved: Bool
    /// True if a secret is stored but must not be sent. The secret is for an earlier launch of the app, or was given
    /// under an earlier approval.
    package let isSecretOutdated: Bool

    package init(_ routes: [AuthorizedRoute], isUnapproved: Bool = false, isSecretOutdated: Bool = false) {
        self.routes = routes
        self.isUnapproved = isUnapproved
        self.isSecretOutdated = isSecretOutdated
    }

    /// True if a route has a secret to send.
    package var hasSecret: Bool { routes.contains { $0.secret != nil } }

    /// A copy for callers without the scope `secret.use`: the same routes, with the secrets withheld.
    package var withoutSecrets: EndpointAccess {
        EndpointAccess(routes.map { AuthorizedRoute($0.route, withheld: $0.secret) }, isUnapproved: isUnapproved)
    }
}

/// An approved route to an endpoint, and its secret.
package struct AuthorizedRoute: Sendable {
    package let route: Route
    /// The secret to send; nil when none is stored for this route.
    package let secret: EndpointSecret?

    /// A stored secret that this caller may not use. Used only for redaction of responses.
    package let withheld: EndpointSecret?

    package init(_ route: Route, secret: EndpointSecret? = nil, withheld: EndpointSecret? = nil) {
        self.route = route
        self.secret = secret
        self.withheld = withheld
    }
}
