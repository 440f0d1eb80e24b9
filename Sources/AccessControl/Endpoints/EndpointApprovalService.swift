package import Model
import Synchronization

/// Approvals of endpoints' network addresses.
package struct EndpointApprovalService: Sendable {
    let store: AccessStore

    /// Every approval, sorted by endpoint ID.
    package var list: [Approval] {
        get async { await store.state.approvals.values.sorted { $0.endpoint < $1.endpoint } }
    }

    /// Approval and secret bindings of every endpoint that has an approval or a secret.
    package var trusts: [EndpointID: EndpointTrust] {
        get async {
            let state = await store.state
            let ids = Set(state.approvals.keys).union(state.secrets.keys)
            return Dictionary(uniqueKeysWithValues: ids.map { ($0, state.trust(of: $0)) })
        }
    }

    /// Returns the approval and the secret bindings of an endpoint.
    package func trust(of endpoint: EndpointID) -> EndpointTrust {
        store.live.content.withLock { $0.state.trust(of: endpoint) }
    }

    /// Subscribes to changes of approvals and secrets. A slow subscriber misses some changes, but always gets a later
    /// one.
    package func changes() -> AsyncStream<EndpointID> { store.approvalChangeSubscribers.subscribe() }

    /// Approves one network address of an endpoint. The API has verified that the caller is an owner.
    ///
    /// Earlier approved addresses stay approved while machine and app are the same. Otherwise the approval is new, and a
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

    /// Revokes the approval of an endpoint's network addresses and deletes its secret.
    ///
    /// - Throws: `AccessError.notSaved`, after which the approval stays revoked until the broker stops.
    package func revoke(of endpoint: EndpointID, by caller: AuditActor, from source: RequestSource) async throws {
        try await store.transaction { store in
            guard store.state.trust(of: endpoint) != .none else { return }
            var change = ChangeSet([AuditEvent(.approvalWithdrawn, by: caller, from: source, endpoint: endpoint)])
            change.removedApprovals = [endpoint]
            change.removedSecrets = [endpoint]
            try await store.endAndCommit(change)
        }
    }
}

extension AccessState {
    /// Returns the approval and the secret bindings of an endpoint.
    func trust(of endpoint: EndpointID) -> EndpointTrust {
        EndpointTrust(approval: approvals[endpoint], secret: secrets[endpoint]?.bindings ?? [])
    }
}
