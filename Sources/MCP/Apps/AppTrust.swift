package import Model
package import Pairing

/// What somebody's yes and an app's secret allow, and the log of what is done with them.
package protocol AppTrust: Sendable {
    /// The ways to an endpoint that may be taken for this caller now.
    func clearance(of endpoint: Endpoint, for caller: AgentCaller) async -> Clearance

    /// Notes whether an app took the secret that it was shown.
    func noteSecret(of endpoint: EndpointID, isTaken: Bool) async

    /// Writes a call into the audit log.
    func note(_ use: EndpointUse, by caller: AgentCaller) async

    /// The endpoints whose approval or secret changes from now on.
    func changes() async -> AsyncStream<EndpointID>
}
