package import Model
package import Pairing

/// Trust as pairing keeps it.
package struct PairingTrust: AppTrust {
    private let pairing: PairingStore

    package init(_ pairing: PairingStore) { self.pairing = pairing }

    package func clearance(of endpoint: Endpoint, for caller: AgentCaller) async -> Clearance {
        let clearance = pairing.clearance(of: endpoint)
        return caller.may(.secretUse, on: endpoint) ? clearance : clearance.withoutSecrets
    }

    package func noteSecret(of endpoint: EndpointID, isTaken: Bool) async {
        pairing.noteSecret(of: endpoint, isTaken: isTaken)
    }

    package func note(_ use: EndpointUse, by caller: AgentCaller) async {
        pairing.note(use, by: caller.caller, from: caller.origin)
    }

    package func changes() async -> AsyncStream<EndpointID> { await pairing.trustChanges() }
}
