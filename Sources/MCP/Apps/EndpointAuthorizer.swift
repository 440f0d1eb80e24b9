package import Model
package import AccessControl

/// What somebody's yes and an app's secret allow, and the log of what is done with them.
package protocol EndpointAuthorizer: Sendable {
    /// The ways to an endpoint that may be taken for this caller now.
    func clearance(of endpoint: Endpoint, for caller: AgentCaller) async -> EndpointAccess

    /// The state of everybody's permissions: ask for it before `clearance`, and hand it to `deliver`.
    var generation: UInt64 { get }

    /// Whether the caller's grant counts at this moment; an owner has none, and counts always.
    func isLive(_ caller: AgentCaller) -> Bool

    /// Runs a write that returns at once, if no permission has ended or changed since that generation.
    ///
    /// - Returns: Nil when the write was not run.
    /// - Throws: What the write throws.
    func deliver<Value: Sendable, Failure: Error>(
        for caller: AgentCaller,
        since generation: UInt64,
        _ write: () throws(Failure) -> Value
    ) throws(Failure) -> Value?

    /// Registers something that ends with the caller's grant; nil for a caller without a grant.
    ///
    /// - Throws: When the grant has ended.
    func open(for caller: AgentCaller, cut: @escaping @Sendable () -> Void) throws -> GrantSession?

    /// It has ended by itself.
    func close(_ use: GrantSession)

    /// Notes whether an app took the secret that it was shown.
    func noteSecret(of endpoint: Endpoint, isTaken: Bool) async

    /// Writes a call into the audit log.
    func note(_ use: EndpointCallEvent, by caller: AgentCaller) async

    /// The endpoints whose approval or secret changes from now on.
    func changes() async -> AsyncStream<EndpointID>
}
