import FoundationEssentials
import Logging
package import Model
import Synchronization

extension AccessStore {
    package var approvals: [Approval] { ledger.approvals.values.sorted { $0.endpoint < $1.endpoint } }

    package func approval(of endpoint: EndpointID) -> Approval? { ledger.approvals[endpoint] }

    /// The same for every endpoint that has an approval or a secret.
    package var trusts: [EndpointID: EndpointTrust] {
        let ids = Set(ledger.approvals.keys).union(ledger.secrets.keys)
        return Dictionary(uniqueKeysWithValues: ids.map { ($0, trust(of: $0)) })
    }

    /// Everything that is known of an endpoint's trust.
    package nonisolated func trust(of endpoint: EndpointID) -> EndpointTrust {
        books.withLock { books in
            EndpointTrust(
                approval: books.ledger.approvals[endpoint],
                secret: books.ledger.secrets[endpoint]?.bindings ?? []
            )
        }
    }

    /// Approves one network address of an endpoint. The API has made sure that the caller is an owner.
    ///
    /// Addresses that were approved before stay approved as long as host and app are the same. Otherwise this is a new
    /// approval, and a secret that was given only under the earlier one is forgotten.
    /// `address` is one that the endpoint has now; nil takes its preferred network address. `port` is needed for a port
    /// below 1024.
    /// - Throws: `AccessError.notFound` when the endpoint is not at that address now, `.outOfRange` when the port has to
    ///   be named.
    @discardableResult
    package func approve(
        _ endpoint: Endpoint,
        at address: String? = nil,
        port: UInt16? = nil,
        by caller: AuditActor,
        from origin: RequestSource
    ) throws -> Approval {
        let network = endpoint.routes.compactMap { route -> (LANRoute, EndpointRoute)? in
            if case .lan(let lan) = route.route, lan.host != nil { (lan, route) } else { nil }
        }
        guard let (first, route) = network.first(where: { address == nil || $0.0.address == address }),
            let host = first.host
        else {
            throw AccessError.notFound(Self.nothingToApprove(endpoint, address, network.map(\.0.address)))
        }
        if first.port < ApprovalPolicy.firstUserPort, port != first.port {
            throw AccessError.outOfRange(
                "port \(first.port) belongs to a system service; name it if that is meant: "
                    + ApprovalPolicy.command(toApprove: route, of: endpoint.id)
            )
        }
        let earlier = ledger.approvals[endpoint.id]
        let stays = earlier.map { $0.host == host && $0.app == route.app } ?? false
        // One advert may show the same address on several interfaces: each is approved by itself.
        let added = Approval.Address(first)
        let kept = (stays ? earlier?.addresses ?? [] : []).filter { $0 != added }
        let approval = Approval(
            id: (stays ? earlier?.id : nil) ?? Token(random: .invite).id,
            endpoint: endpoint.id,
            by: caller,
            at: now().date,
            app: route.app,
            host: host,
            addresses: kept + [added],
            port: port ?? (stays ? earlier?.port : nil)
        )
        var event = AuditEvent(.endpointApproved, by: caller, from: origin)
        event.endpoint = endpoint.id
        event.detail = "\(route.app) on \(host) at \(route)"
        var change = ChangeSet()
        change.approvals = [approval]
        let bindings = ledger.secrets[endpoint.id]?.bindings ?? []
        if !stays, bindings.allSatisfy({ $0.origin.hasPrefix("approval ") }) { change.unsealed = [endpoint.id] }
        change.events = [event]
        try commit(change)
        return approval
    }

    private static func nothingToApprove(_ endpoint: Endpoint, _ address: String?, _ has: [String]) -> String {
        if let address, !has.isEmpty {
            return "\(endpoint.id) is not at \(SanitizedText(address)) now, but at \(has.joined(separator: ", "))"
        }
        if has.isEmpty, endpoint.approval == .approved, !endpoint.routes.isEmpty {
            return "\(endpoint.id) has no network address; its cable or its configuration needs no approval"
        }
        return "\(endpoint.id) has no address now that may be reached; approve it when it is back"
    }

    /// Revokes the approval of an endpoint's network addresses, and forgets its secret.
    ///
    /// - Throws: `AccessError.notSaved`, after which it is revoked until the broker stops.
    package func withdrawApproval(of endpoint: EndpointID, by caller: AuditActor, from origin: RequestSource)
        async throws
    {
        guard ledger.approvals[endpoint] != nil || ledger.secrets[endpoint] != nil else { return }
        var event = AuditEvent(.approvalWithdrawn, by: caller, from: origin)
        event.endpoint = endpoint
        var change = ChangeSet()
        change.unapproved = [endpoint]
        change.unsealed = [endpoint]
        change.events = [event]
        try await close(by: change)
    }

    /// Keeps an endpoint's secret, sealed, for its approved routes and for their launch of the app.
    ///
    /// `port` is where the app says that it listens: the broker may not have seen that launch yet. Where it names none and the
    /// app could not be asked, `isForUnseen` keeps it for the first other launch, too, that takes it over the same route
    /// (`settleSecret`).
    /// - Throws: `AccessError.secretNotPresentable` when no route is approved, `.notSaved`.
    package func setSecret(
        _ secret: EndpointSecret,
        of endpoint: Endpoint,
        on port: UInt16? = nil,
        isForUnseen: Bool = false,
        by caller: AuditActor,
        from origin: RequestSource
    ) throws {
        let approval = ledger.approvals[endpoint.id]
        if let refusal = ApprovalPolicy.refusal(of: endpoint, approval) {
            throw AccessError.secretNotPresentable(endpoint: endpoint.id, why: refusal.detail)
        }
        var bindings: [EndpointTrust.SecretBinding] = []
        for route in ApprovalPolicy.approvedRoutes(of: endpoint, approval) {
            guard let binding = ApprovalPolicy.secretBinding(for: route, approval) else { continue }
            bindings.append(binding)
            if isForUnseen { bindings.append(binding.next) }
            if route.boot == nil, let port {
                bindings.append(.init(origin: binding.origin, launch: EndpointRoute.launch(atPort: port)))
            }
        }
        if endpoint.routes.isEmpty, let approval, port != nil || isForUnseen {
            bindings = ApprovalPolicy.secretBindings(at: port, approval)
        }
        guard !bindings.isEmpty else {
            throw AccessError.secretNotPresentable(
                endpoint: endpoint.id,
                why: "it is away, and no network address of it is approved; give the secret when it is back"
            )
        }
        let record = try sealed(secret, of: endpoint.id, for: bindings)
        var event = AuditEvent(.secretSet, by: caller, from: origin)
        event.endpoint = endpoint.id
        event.detail = "for " + Set(bindings.map(\.origin)).sorted().joined(separator: ", ")
        var change = ChangeSet()
        change.secrets = [record]
        change.events = [event]
        try commit(change)
    }

    /// The secret to send to an endpoint over one of its routes, and only there; nil when none is held for it.
    ///
    /// - Throws: `AccessError.secretNotPresentable` when there is one and it must not be sent.
    package func secret(of endpoint: Endpoint, over route: EndpointRoute) throws -> EndpointSecret? {
        let (approval, record) = kept(of: endpoint)
        return try secret(in: record, of: endpoint, over: route, approval)
    }

    /// The approval of an endpoint and its secret, as they stand together.
    nonisolated func kept(of endpoint: Endpoint) -> (Approval?, SecretRecord?) {
        books.withLock { ($0.ledger.approvals[endpoint.id], $0.ledger.secrets[endpoint.id]) }
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
            throw refusal("it was not seen at \(route)")
        }
        switch ApprovalPolicy.verdict(on: route, approval) {
        case .approved: break
        case .discovered:
            let command = ApprovalPolicy.command(toApprove: route, of: id)
            throw refusal("no owner approved \(route); first: \(command)")
        case .changed(let why):
            let command = ApprovalPolicy.command(toApprove: route, of: id)
            throw refusal("\(why); if that is right: \(command)")
        }
        guard let binding = ApprovalPolicy.secretBinding(for: route, approval),
            record.bindings.contains(where: { $0.origin == binding.origin })
        else {
            throw refusal("it was given for another route than \(route); set it again: patchbay secret set \(id)")
        }
        guard record.bindings.contains(where: { $0.covers(binding) }) else {
            throw refusal("the app was started again since; set the new one: patchbay secret set \(id)")
        }
        do { return try keys.open(record) } catch {
            throw refusal("what is kept of it is damaged; set it again: patchbay secret set \(id)")
        }
    }

    /// Whether a secret is held for this launch of an endpoint on an approved route, and the app did not reject it.
    package func holdsSecret(of endpoint: Endpoint) -> Bool {
        let (trust, isRejected) = books.withLock { books in
            let record = books.ledger.secrets[endpoint.id]
            let trust = EndpointTrust(
                approval: books.ledger.approvals[endpoint.id],
                secret: record?.bindings ?? []
            )
            return (trust, record.map { $0.sealed == books.rejected[endpoint.id] } ?? false)
        }
        return !isRejected && endpoint.routes.contains { ApprovalPolicy.maySendSecret(over: $0, trust) }
    }

    /// Notes whether an app took the secret that it was shown. One that it did not take is shown again, as it may be on its way
    /// down or up; but it does not count as held until another one is set, or it is taken after all.
    package nonisolated func noteSecret(of endpoint: EndpointID, isTaken: Bool) {
        books.withLock { $0.rejected[endpoint] = isTaken ? nil : $0.ledger.secrets[endpoint]?.sealed }
    }

    /// Binds a secret that was given for an unseen launch: to the launch that took it, or to none but those that were seen.
    ///
    /// A launch that was there when it was given may still refuse it, on its way down: that settles nothing.
    package func settleSecret(of endpoint: Endpoint, isTaken: Bool) throws {
        let (approval, kept) = kept(of: endpoint)
        guard let kept, kept.bindings.contains(where: \.isForUnseen) else { return }
        let seen = kept.bindings.filter { !$0.isForUnseen }
        let met = ApprovalPolicy.approvedRoutes(of: endpoint, approval)
            .compactMap { ApprovalPolicy.secretBinding(for: $0, approval) }
            .filter { now in kept.bindings.contains { $0.covers(now) } }
        guard isTaken ? !met.isEmpty : !met.allSatisfy(seen.contains) else { return }
        var change = ChangeSet()
        change.secrets = [try sealed(try keys.open(kept), of: endpoint.id, for: isTaken ? met : seen)]
        var event = AuditEvent(.secretSet, by: .broker, from: .broker)
        event.endpoint = endpoint.id
        event.detail = isTaken ? "for the launch that took it" : "for no later launch: the app did not take it"
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
            set: now()
        )
    }

    /// The endpoints of which a secret is held.
    package var secretHolders: [EndpointID] { ledger.secrets.keys.sorted() }

    @discardableResult
    package func forgetSecret(of endpoint: EndpointID, by caller: AuditActor, from origin: RequestSource) throws -> Bool
    {
        guard ledger.secrets[endpoint] != nil else { return false }
        var event = AuditEvent(.secretForgotten, by: caller, from: origin)
        event.endpoint = endpoint
        var change = ChangeSet()
        change.unsealed = [endpoint]
        change.events = [event]
        try commit(change)
        return true
    }
}

/// What the calls of endpoints need of pairing.
extension AccessStore {
    /// How long a call may be missing in the audit log: each line alone would cost a call several milliseconds of fsync(2).
    static let notePause: Duration = .seconds(1)

    /// The ways to an endpoint that may be taken for an agent now, with the secret for each.
    package nonisolated func clearance(of endpoint: Endpoint) -> EndpointAccess {
        let (approval, record) = kept(of: endpoint)
        let routes = ApprovalPolicy.approvedRoutes(of: endpoint, approval)
        // A secret that is held and must not be sent is an error; its reason matters only to a caller that sets it.
        let passages = routes.map {
            AuthorizedRoute($0.route, secret: try? secret(in: record, of: endpoint, over: $0, approval))
        }
        return EndpointAccess(
            passages,
            isRefused: routes.isEmpty && !endpoint.routes.isEmpty,
            isSecretOutdated: record != nil && passages.allSatisfy { $0.secret == nil }
        )
    }

    /// Writes a call of an endpoint into the audit log, within a second and before the broker stops in order.
    ///
    /// Does not wait for the store, which may be waiting for the disk. A crash may lose the last second of them; nothing else
    /// depends on these lines.
    package nonisolated func note(_ use: EndpointCallEvent, by caller: AuditActor, from origin: RequestSource) {
        var event = AuditEvent(.called, by: caller, from: origin)
        event.endpoint = use.endpoint
        event.subject = use.subject
        event.bytes = use.bytes
        event.detail = use.outcome
        guard !notes.add(event) else { return }
        logger.error("a call is missing in the audit log", metadata: ["endpoint": "\(use.endpoint)"])
    }

    /// The endpoints whose approval or secret changes from now on. A follower that is too slow misses some, and is told of a
    /// later one.
    package func trustChanges() -> AsyncStream<EndpointID> { trustFollowers.subscribe() }

    func tellTrust(_ change: ChangeSet) {
        let touched =
            change.approvals.map(\.endpoint) + change.secrets.map(\.endpoint) + change.unapproved + change.unsealed
        for id in Set(touched) { trustFollowers.send(id) }
    }
}

/// What may be done to reach an endpoint for an agent, all looked up in one step.
package struct EndpointAccess: Sendable {
    /// The approved ways, in the endpoint's order; empty where there are none.
    package let passages: [AuthorizedRoute]
    /// The endpoint has routes, and nobody said yes to any of them.
    package let isRefused: Bool
    /// A secret is held and must not be sent: it is for an earlier launch of the app, or was given under an earlier yes.
    package let isSecretOutdated: Bool

    package init(_ passages: [AuthorizedRoute], isRefused: Bool = false, isSecretOutdated: Bool = false) {
        self.passages = passages
        self.isRefused = isRefused
        self.isSecretOutdated = isSecretOutdated
    }

    /// Whether there is a secret to show.
    package var hasSecret: Bool { passages.contains { $0.secret != nil } }

    /// The same for somebody who may not have a secret presented.
    package var withoutSecrets: EndpointAccess {
        EndpointAccess(passages.map { AuthorizedRoute($0.route, withheld: $0.secret) }, isRefused: isRefused)
    }
}

/// A way to an endpoint that may be taken, and the secret to show there.
package struct AuthorizedRoute: Sendable {
    package let route: Route
    /// Nil where none is held for it.
    package let secret: EndpointSecret?

    /// A secret that is held and not shown, as the caller may not have it shown.
    package let withheld: EndpointSecret?

    package init(_ route: Route, secret: EndpointSecret? = nil, withheld: EndpointSecret? = nil) {
        self.route = route
        self.secret = secret
        self.withheld = withheld
    }
}
