package import Model
import Synchronization

/// Approvals and denials of endpoints' network addresses.
package struct EndpointApprovalService: Sendable {
    let store: AccessStore

    /// Every approval, sorted by endpoint ID.
    package var list: [Approval] {
        get async { await store.state.approvals.values.sorted { $0.endpoint < $1.endpoint } }
    }

    /// Every denial, sorted by endpoint ID.
    package var denials: [Denial] {
        get async { await store.state.denials.values.sorted { $0.endpoint < $1.endpoint } }
    }

    /// Approval, denial and secret bindings of every endpoint that has one of them.
    package var trusts: [EndpointID: EndpointTrust] {
        get async {
            let state = await store.state
            let ids = Set(state.approvals.keys).union(state.denials.keys).union(state.secrets.keys)
            return Dictionary(uniqueKeysWithValues: ids.map { ($0, state.trust(of: $0)) })
        }
    }

    /// Returns the approval, the denial and the secret bindings of an endpoint.
    package func trust(of endpoint: EndpointID) -> EndpointTrust {
        store.live.content.withLock { $0.state.trust(of: endpoint) }
    }

    /// Subscribes to changes of approvals, denials and secrets. A slow subscriber misses some changes, but always gets a later
    /// one.
    package func changes() -> AsyncStream<EndpointID> { store.approvalChangeSubscribers.subscribe() }

    /// Approves one network address of an endpoint. The API has verified that the caller is an owner.
    ///
    /// Earlier approved addresses stay approved while machine and app are the same. Otherwise the approval is new, and a
    /// secret that was given only under the earlier approval is deleted. A denial of the address ends. `address` is a current address of the
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
    ) async throws -> Approval {
        let (candidate, machine, route) = try Self.candidate(of: endpoint, at: address, port: port)
        return try await store.transaction { store in
            let earlier = store.state.approvals[endpoint.id]
            let stays = earlier.map { $0.machine == machine && $0.app == route.app } ?? false
            // One advertisement may list the same address on several interfaces; each is approved separately.
            let added = Approval.Address(candidate)
            let remaining = (stays ? earlier?.addresses ?? [] : []).filter { $0 != added }
            let approval = Approval(
                id: (stays ? earlier?.id : nil) ?? Token(random: .invite).id,
                endpoint: endpoint.id,
                approvedBy: caller,
                approvedAt: store.now().date,
                app: route.app,
                machine: machine,
                addresses: remaining + [added],
                port: port ?? (stays ? earlier?.port : nil)
            )
            let detail = "\(route.app) on \(machine) at \(route)"
            var change = ChangeSet([
                AuditEvent(.endpointApproved, by: caller, from: source, endpoint: endpoint.id, detail: detail)
            ])
            change.approvals = [approval]
            if let denial = store.state.denials[endpoint.id] {
                let rest = denial.without(candidate.address)
                (change.denials, change.removedDenials) = rest.map { ([$0], []) } ?? ([], [endpoint.id])
            }
            let bindings = store.state.secrets[endpoint.id]?.bindings ?? []
            if !stays, bindings.allSatisfy({ $0.origin.hasPrefix("approval ") }) {
                change.removedSecrets = [endpoint.id]
            }
            try store.commit(change)
            return approval
        }
    }

    /// Returns the network address to approve, with its machine and route.
    private static func candidate(
        of endpoint: Endpoint,
        at address: String?,
        port: UInt16?
    ) throws(AccessError) -> (NetworkRoute, SanitizedText, EndpointRoute) {
        let network = endpoint.routes.compactMap { route -> (NetworkRoute, EndpointRoute)? in
            if case .network(let candidate) = route.route, candidate.machine != nil { (candidate, route) } else { nil }
        }
        guard let (first, route) = network.first(where: { address == nil || $0.0.address == address }),
            let machine = first.machine
        else {
            throw .notFound(nothingToApprove(endpoint, at: address, known: network.map(\.0.address)))
        }
        guard first.port >= ApprovalPolicy.firstUserPort || port == first.port else {
            throw .outOfRange(
                "port \(first.port) belongs to a system service; name the port if you mean it: "
                    + ApprovalPolicy.command(toApprove: route, of: endpoint.id)
            )
        }
        return (first, machine, route)
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

    /// Denies network addresses of an endpoint: `address`, or all that are not approved. They are remembered until one is
    /// approved. An approval of one of them is revoked, and the secret is then deleted.
    ///
    /// - Throws: `AccessError.notFound` when the endpoint is not at that address now; `.notSaved`, after which the denial
    ///   holds until the broker stops.
    package func deny(
        _ endpoint: Endpoint,
        at address: String? = nil,
        by caller: AuditActor,
        from source: RequestSource
    ) async throws {
        try await store.transaction { store in
            let approval = store.state.approvals[endpoint.id]
            let announced = endpoint.routes.filter { $0.route.machine != nil }
            let chosen = announced.filter { route in
                address.map { $0 == route.route.address }
                    ?? (ApprovalPolicy.decision(on: route, approval) != .approved)
            }
            guard let route = chosen.first, let machine = route.route.machine else {
                let known = announced.compactMap(\.route.address)
                let isApproved = address == nil && !known.isEmpty
                throw AccessError.notFound(
                    isApproved
                        ? "every address of \(endpoint.id) is approved: patchbay unapprove \(endpoint.id)"
                        : Self.nothingToApprove(endpoint, at: address, known: known)
                )
            }
            let denied = chosen.compactMap(\.route.address)
            let earlier = store.state.denials[endpoint.id]?.addresses ?? []
            let addresses = denied.reduce(into: earlier) { if !$0.contains($1) { $0.append($1) } }
            let detail = "\(route.app) on \(machine) at \(denied.joined(separator: ", "))"
            var change = ChangeSet([
                AuditEvent(.endpointDenied, by: caller, from: source, endpoint: endpoint.id, detail: detail)
            ])
            change.denials = [
                Denial(
                    endpoint: endpoint.id,
                    deniedBy: caller,
                    deniedAt: store.now().date,
                    app: route.app,
                    machine: machine,
                    addresses: addresses
                )
            ]
            if let approval, approval.addresses.contains(where: { denied.contains($0.address) }) {
                change = change + Self.withdrawal(of: endpoint.id, by: caller, from: source)
            }
            try await store.endAndCommit(change)
        }
    }

    /// Revokes the approval of an endpoint's network addresses and deletes its secret. With `isRemoved`, the endpoint leaves
    /// the list, and its denial is forgotten too.
    ///
    /// - Throws: `AccessError.notSaved`, after which the approval stays revoked until the broker stops.
    package func revoke(
        of endpoint: EndpointID,
        isRemoved: Bool = false,
        by caller: AuditActor,
        from source: RequestSource
    ) async throws {
        try await store.transaction { store in
            let trust = store.state.trust(of: endpoint)
            guard trust.isTrusted || isRemoved && trust.denial != nil else { return }
            var change = Self.withdrawal(of: endpoint, by: caller, from: source)
            if isRemoved { change.removedDenials = [endpoint] }
            try await store.endAndCommit(change)
        }
    }

    private static func withdrawal(of endpoint: EndpointID, by caller: AuditActor, from source: RequestSource)
        -> ChangeSet
    {
        var change = ChangeSet([AuditEvent(.approvalWithdrawn, by: caller, from: source, endpoint: endpoint)])
        change.removedApprovals = [endpoint]
        change.removedSecrets = [endpoint]
        return change
    }
}

extension AccessState {
    /// Returns the approval, the denial and the secret bindings of an endpoint.
    func trust(of endpoint: EndpointID) -> EndpointTrust {
        EndpointTrust(
            approval: approvals[endpoint],
            denial: denials[endpoint],
            secret: secrets[endpoint]?.bindings ?? []
        )
    }
}
