package import Model
package import AccessControl

/// Trust as pairing keeps it.
package struct PairingTrust: EndpointAuthorizer {
    private let pairing: AccessStore

    package init(_ pairing: AccessStore) { self.pairing = pairing }

    package func clearance(of endpoint: Endpoint, for caller: AgentCaller) async -> EndpointAccess {
        let clearance = pairing.clearance(of: endpoint)
        return caller.may(.secretUse, on: endpoint) ? clearance : clearance.withoutSecrets
    }

    package var generation: UInt64 { pairing.generation }

    package func isLive(_ caller: AgentCaller) -> Bool { caller.grant.map(pairing.isLive) ?? true }

    package func deliver<Value: Sendable, Failure: Error>(
        for caller: AgentCaller,
        since generation: UInt64,
        _ write: () throws(Failure) -> Value
    ) throws(Failure) -> Value? {
        try pairing.deliver(under: caller.grant, since: generation, write)
    }

    package func open(for caller: AgentCaller, cut: @escaping @Sendable () -> Void) throws -> GrantSession? {
        try caller.grant.map { try pairing.open(under: $0) { cut() } }
    }

    package func close(_ use: GrantSession) { pairing.close(use) }

    package func noteSecret(of endpoint: Endpoint, isTaken: Bool) async {
        pairing.noteSecret(of: endpoint.id, isTaken: isTaken)
        guard pairing.trust(of: endpoint.id).secret.contains(where: \.isForUnseen) else { return }
        // What cannot be saved stays as it is, and is settled by the next call.
        try? await pairing.settleSecret(of: endpoint, isTaken: isTaken)
    }

    package func note(_ use: EndpointCallEvent, by caller: AgentCaller) async {
        pairing.note(use, by: caller.caller, from: caller.origin)
    }

    package func changes() async -> AsyncStream<EndpointID> { await pairing.trustChanges() }
}
