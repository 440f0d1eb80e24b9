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
    /// secret is for this route alone. With `isExchanged`, the app gave the secret in exchange for the stored one, and
    /// the same launch accepts it.
    /// - Throws: `AccessError.secretNotPresentable` when no route is approved, `.notSaved`.
    package func set(
        _ secret: EndpointSecret,
        of endpoint: Endpoint,
        over route: Route? = nil,
        on port: UInt16? = nil,
        isForUnseen: Bool = false,
        isExchanged: Bool = false,
        by caller: AuditActor,
        from source: RequestSource
    ) async throws {
        await observe(endpoint)
        var endpoint = endpoint
        if let route { endpoint.routes.removeAll { $0.route != route } }
        if !isForUnseen { endpoint.routes = endpoint.routes.map(reportingObservedLaunch) }
        try await store.transaction { [endpoint] store in
            let bindings = try Self.bindings(
                of: endpoint,
                store.state.trust(of: endpoint.id),
                on: port,
                isForUnseen: isForUnseen,
                launches: store.launches
            )
            let origins = Set(bindings.map(\.origin)).sorted().joined(separator: ", ")
            var change = ChangeSet([
                AuditEvent(.secretSet, by: caller, from: source, endpoint: endpoint.id, detail: "for \(origins)")
            ])
            change.secrets = [try SecretRecord(sealing: secret, of: endpoint.id, for: bindings, store.keys)]
            let observed = observations(of: endpoint)
            try store.commit(change) { content in
                content.beginPresentation(of: secret, to: endpoint.id, observed, on: port, isExchanged: isExchanged)
            }
        }
    }

    /// Returns a route with the launch ID that the observed server reports. The source of the route may not have
    /// reported that launch yet.
    private func reportingObservedLaunch(_ route: EndpointRoute) -> EndpointRoute {
        guard let observation = store.launches?[route.route] else { return route }
        // An advertisement may report a launch ID that the server itself does not report.
        return route.with(launchID: observation.launchID ?? (route.route.isNetwork ? route.launchID : nil))
    }

    /// Returns the routes and launches that a new secret is for.
    private static func bindings(
        of endpoint: Endpoint,
        _ trust: EndpointTrust,
        on port: UInt16?,
        isForUnseen: Bool,
        launches: ObservedLaunches?
    ) throws(AccessError) -> [EndpointTrust.SecretBinding] {
        if let refusal = ApprovalPolicy.refusal(of: endpoint, trust) {
            throw .secretNotPresentable(endpoint: endpoint.id, why: "\(refusal.detail): \(refusal.hint)")
        }
        var bindings: [EndpointTrust.SecretBinding] = []
        for route in ApprovalPolicy.approvedRoutes(of: endpoint, trust.approval) {
            guard let binding = ApprovalPolicy.secretBinding(for: route, trust.approval) else { continue }
            bindings.append(binding)
            // An app logs its URL before it listens, so a URL with a port may be for a launch that is not observed yet.
            let isAwaited = launches.map { port != nil && $0[route.route] == nil } ?? false
            if isForUnseen || isAwaited { bindings.append(binding.next) }
            if route.launchID == nil, let port {
                bindings.append(.init(origin: binding.origin, launch: EndpointRoute.launch(atPort: port)))
            }
        }
        if endpoint.routes.isEmpty, let approval = trust.approval, port != nil || isForUnseen {
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
        return try secret(in: record, of: endpoint, over: route, approval, isSent: true)
    }

    /// Returns the approved routes to an endpoint, with the secret for each, to a client who reads the secret.
    ///
    /// - Throws: `AccessError.notSaved` if the audit log cannot record the access.
    package func read(of endpoint: Endpoint, by caller: AuditActor, from source: RequestSource) async throws
        -> AuthorizedRoutes
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
    package func access(to endpoint: Endpoint) -> AuthorizedRoutes {
        let (approval, record) = stored(for: endpoint)
        let routes = ApprovalPolicy.approvedRoutes(of: endpoint, approval)
        // A stored secret that must not be sent is an error. Only callers that set secrets need its reason.
        let authorized = routes.map {
            AuthorizedRoute(
                $0.route,
                secret: try? secret(in: record, of: endpoint, over: $0, approval, isSent: true),
                observation: store.launches?[$0.route]
            )
        }
        return AuthorizedRoutes(
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
        _ approval: Approval?,
        isSent: Bool
    ) throws(AccessError) -> EndpointSecret? {
        guard let record else { return nil }
        let (id, route) = (endpoint.id, reportingObservedLaunch(route))
        func refusal(_ why: String) -> AccessError { .secretNotPresentable(endpoint: id, why: why) }
        guard endpoint.routes.contains(where: { $0.route == route.route }) else {
            throw refusal("it was not discovered at \(route)")
        }
        switch ApprovalPolicy.decision(on: route, approval) {
        case .approved: break
        case .pending, .denied:
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
        guard let secret = try? store.keys.open(record) else {
            throw refusal("the stored secret is damaged; set it again: patchbay secret set \(id)")
        }
        let isForUnseen = record.bindings.contains { $0.isForUnseen && $0.origin == binding.origin }
        guard mayPresent(secret, to: endpoint, over: route, isForUnseen: isForUnseen, isSent: isSent) else {
            throw refusal("the app may have been restarted since; set the new secret: patchbay secret set \(id)")
        }
        return secret
    }

    /// Returns true if a secret is stored for this launch on an approved route and not rejected by the app.
    package func isUsable(for endpoint: Endpoint) -> Bool {
        let (approval, record) = stored(for: endpoint)
        guard let record, store.live.content.withLock({ $0.rejected[endpoint.id] }) != record.sealed else {
            return false
        }
        return endpoint.routes.contains { route in
            let secret = try? secret(in: record, of: endpoint, over: route, approval, isSent: false)
            return secret != nil
        }
    }

    /// Records whether an app accepted its secret. A rejected secret is not sent to that launch again.
    package func recordResult(for endpoint: Endpoint, accepted: Bool) {
        store.live.content.withLock { content in
            content.rejected[endpoint.id] = accepted ? nil : content.state.secrets[endpoint.id]?.sealed
            if !accepted { content.presentations[endpoint.id]?.reject(at: endpoint.routes.map { RoutePort($0.route) }) }
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

    /// Begins to observe the launch behind each approved route of an endpoint.
    package func observe(_ endpoint: Endpoint) async {
        guard let launches = store.launches, endpoint.kind != .dartVM else { return }
        for route in ApprovalPolicy.approvedRoutes(of: endpoint, stored(for: endpoint).0) where !route.route.isInbound {
            _ = await launches.observation(of: route.route)
        }
    }

    /// Returns whether a secret of the endpoint is stored.
    package func isStored(for endpoint: Endpoint) -> Bool { stored(for: endpoint).1 != nil }

    /// Records the launches that accepted a secret which is not stored yet.
    package func recordAcceptance(of secret: EndpointSecret, by endpoint: Endpoint, over routes: [AuthorizedRoute]) {
        let launches = routes.compactMap { route in route.observation.map { (RoutePort(route.route), $0) } }
        let presentation = SecretPresentation(of: secret, to: Dictionary(launches) { first, _ in first })
        store.live.content.withLock { $0.acceptances[endpoint.id] = presentation }
    }

    /// Returns the launches that are observed now.
    private func observations(of endpoint: Endpoint) -> [RoutePort: LaunchObservation] {
        let observed = endpoint.routes.compactMap { route in
            store.launches?[route.route].map { (RoutePort(route.route), $0) }
        }
        return Dictionary(observed) { first, _ in first }
    }

    /// Returns whether a stored secret may be sent to the launch that is observed behind a route.
    ///
    /// A launch ID that the observed server reports without a secret proves the launch. Without one, only an unbroken
    /// observation does. So a secret of an earlier run of the broker needs a launch ID, or was given for a launch that
    /// was not seen yet.
    private func mayPresent(
        _ secret: EndpointSecret,
        to endpoint: Endpoint,
        over route: EndpointRoute,
        isForUnseen: Bool,
        isSent: Bool
    ) -> Bool {
        // The code of a Dart VM service is given to clients. The broker does not send it.
        guard let launches = store.launches, endpoint.kind != .dartVM else { return true }
        guard let observation = launches[route.route] else { return false }
        let port = RoutePort(route.route)
        let isProved = observation.launchID != nil && observation.launchID == route.launchID
        return store.live.content.withLock { content in
            var presentation = content.presentations[endpoint.id].flatMap { $0.isOf(secret) ? $0 : nil }
            if presentation == nil, isForUnseen || isProved { presentation = SecretPresentation(of: secret) }
            guard presentation?.allows(observation, at: port, isForUnseen: isForUnseen || isProved) == true else {
                return false
            }
            if isSent {
                presentation?.record(observation, at: port)
                content.presentations[endpoint.id] = presentation
            }
            return true
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

extension InMemoryAccessState.Content {
    /// Binds a new secret to the launches that accepted it, or else to those that are observed now.
    fileprivate mutating func beginPresentation(
        of secret: EndpointSecret,
        to id: EndpointID,
        _ observed: [RoutePort: LaunchObservation],
        on port: UInt16?,
        isExchanged: Bool
    ) {
        let earlier =
            isExchanged
            ? presentations[id]?.exchanged(for: secret) : acceptances[id].flatMap { $0.isOf(secret) ? $0 : nil }
        acceptances[id] = nil
        presentations[id] = earlier ?? SecretPresentation(of: secret, to: observed, namedPort: port)
    }
}
