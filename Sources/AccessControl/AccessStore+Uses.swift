import Logging
package import Model

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
