import FoundationEssentials
package import Model
import Synchronization

extension PairingStore {
    package var approvals: [Approval] { ledger.approvals.values.sorted { $0.endpoint < $1.endpoint } }

    package func approval(of endpoint: EndpointID) -> Approval? { ledger.approvals[endpoint] }

    /// Says yes to an endpoint where it is now. The door has made sure that the caller is an owner, or the app itself.
    ///
    /// A secret that was given under an earlier yes is forgotten.
    /// - Throws: `PairingError.notFound` while the endpoint is nowhere.
    @discardableResult
    package func approve(_ endpoint: Endpoint, by caller: Caller, from origin: Origin) throws -> Approval {
        guard let place = ApprovalRule.place(of: endpoint) else {
            throw PairingError.notFound("\(endpoint.id) is not there now; approve it when it is back")
        }
        let approval = Approval(
            id: Token(random: .invite).id,
            endpoint: endpoint.id,
            by: caller,
            at: now().date,
            place: place
        )
        var event = AuditEvent(.endpointApproved, by: caller, from: origin)
        event.endpoint = endpoint.id
        event.detail = Self.words(for: place)
        var change = Change()
        change.approvals = [approval]
        change.unsealed = [endpoint.id]
        change.events = [event]
        try commit(change)
        return approval
    }

    /// Takes a yes back, and with it the endpoint's secret.
    ///
    /// - Throws: `PairingError.notSaved`, after which it is taken back until the broker stops.
    package func withdrawApproval(of endpoint: EndpointID, by caller: Caller, from origin: Origin) async throws {
        guard ledger.approvals[endpoint] != nil else { return }
        var event = AuditEvent(.approvalWithdrawn, by: caller, from: origin)
        event.endpoint = endpoint
        var change = Change()
        change.unapproved = [endpoint]
        change.unsealed = [endpoint]
        change.events = [event]
        try await close(by: change)
    }

    /// Keeps an endpoint's secret, sealed, for this launch of the app and this approval.
    ///
    /// An app that says its port may be there before the broker knows: then the secret is for that launch, too. On the cable, and where the owner wrote it down, giving the secret is the yes; an endpoint on the network has to be
    /// approved first.
    /// - Throws: `PairingError.secretNotPresentable`, `.notSaved`.
    package func setSecret(
        _ secret: EndpointSecret,
        of endpoint: Endpoint,
        on port: UInt16? = nil,
        by caller: Caller,
        from origin: Origin
    ) throws {
        guard ApprovalRule.approval(of: endpoint, ledger.approvals[endpoint.id]) == .approved else {
            throw PairingError.secretNotPresentable(
                endpoint: endpoint.id,
                why: "nobody approved where it is now; first: patchbay approve \(endpoint.id)"
            )
        }
        let approval = try ledger.approvals[endpoint.id] ?? approve(endpoint, by: caller, from: origin)
        let boot = Self.boot(of: endpoint)
        let nextBoot = endpoint.boot == nil ? port.map { "port \($0)" } : nil
        let record = SecretRecord(
            endpoint: endpoint.id,
            approval: approval.id,
            boot: boot,
            nextBoot: nextBoot == boot ? nil : nextBoot,
            sealed: try keys.seal(
                secret,
                context: SecretRecord.context(
                    endpoint: endpoint.id,
                    approval: approval.id,
                    boot: boot,
                    nextBoot == boot ? nil : nextBoot
                )
            ),
            set: now()
        )
        var event = AuditEvent(.secretSet, by: caller, from: origin)
        event.endpoint = endpoint.id
        var change = Change()
        change.secrets = [record]
        change.events = [event]
        try commit(change)
    }

    /// The secret to send to an endpoint over one of its routes, and only there; nil when none is held for it.
    ///
    /// - Throws: `PairingError.secretNotPresentable` when there is one and it must not be sent.
    package func secret(of endpoint: Endpoint, over route: Route) throws -> EndpointSecret? {
        let (approval, record) = kept(of: endpoint)
        return try secret(in: record, of: endpoint, over: route, approval)
    }

    /// The yes to an endpoint and its secret, as they stand together.
    nonisolated func kept(of endpoint: Endpoint) -> (Approval?, SecretRecord?) {
        books.withLock { ($0.ledger.approvals[endpoint.id], $0.ledger.secrets[endpoint.id]) }
    }

    nonisolated func secret(
        in record: SecretRecord?,
        of endpoint: Endpoint,
        over route: Route,
        _ approval: Approval?
    ) throws -> EndpointSecret? {
        guard let record else { return nil }
        func refusal(_ why: String) -> PairingError { .secretNotPresentable(endpoint: endpoint.id, why: why) }
        guard endpoint.routes.contains(route) else { throw refusal("it was not seen at \(route)") }
        switch ApprovalRule.verdict(on: route, of: endpoint, approval) {
        case .approved: break
        case .discovered: throw refusal("nobody approved \(route); first: patchbay approve \(endpoint.id)")
        case .changed(let why): throw refusal("\(why); if that is right: patchbay approve \(endpoint.id)")
        }
        guard record.approval == approval?.id else {
            throw refusal("it was given under an earlier approval; set it again")
        }
        guard record.isFor(Self.boot(of: endpoint)) else {
            throw refusal("the app was started again since; set the new one: patchbay secret set \(endpoint.id)")
        }
        do { return try keys.open(record) } catch {
            throw refusal("what is kept of it is damaged; set it again: patchbay secret set \(endpoint.id)")
        }
    }

    /// Whether a secret is held for this launch of an endpoint, as far as anybody knows the right one.
    package func holdsSecret(of endpoint: Endpoint) -> Bool {
        let (record, rejected) = books.withLock { ($0.ledger.secrets[endpoint.id], $0.rejected[endpoint.id]) }
        return record.map { $0.isFor(Self.boot(of: endpoint)) && $0.sealed != rejected } ?? false
    }

    /// Notes whether an app took the secret that it was shown. One that it did not take is shown again, as it may be on its way
    /// down or up; but it does not count as held until another one is set, or it is taken after all.
    package nonisolated func noteSecret(of endpoint: EndpointID, isTaken: Bool) {
        books.withLock { $0.rejected[endpoint] = isTaken ? nil : $0.ledger.secrets[endpoint]?.sealed }
    }

    /// The endpoints of which a secret is held.
    package var secretHolders: [EndpointID] { ledger.secrets.keys.sorted() }

    @discardableResult
    package func forgetSecret(of endpoint: EndpointID, by caller: Caller, from origin: Origin) throws -> Bool {
        guard ledger.secrets[endpoint] != nil else { return false }
        var event = AuditEvent(.secretForgotten, by: caller, from: origin)
        event.endpoint = endpoint
        var change = Change()
        change.unsealed = [endpoint]
        change.events = [event]
        try commit(change)
        return true
    }

    /// What tells one launch of an app from the next: what it says itself, else its port.
    private static func boot(of endpoint: Endpoint) -> String {
        endpoint.boot.map { "boot \($0)" } ?? endpoint.routes.first.map { "port \($0.port)" } ?? ""
    }

    private static func words(for place: Approval.Place) -> String {
        switch place {
        case .cable(let udid): "on the cable of \(udid)"
        case .network(let host, let addresses): "on \(host) at \(addresses.map(\.address).joined(separator: ", "))"
        case .configuration: "as configured"
        }
    }
}
