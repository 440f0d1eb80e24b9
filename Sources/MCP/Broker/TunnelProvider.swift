package import Model

/// The tunnels of whoever calls: an owner has all of them, a grant those that it opened.
package protocol TunnelProvider: Sendable {
    /// - Throws: What says why not, for the caller to read.
    func open(_ spec: TunnelSpec, for caller: AgentCaller) async throws -> Tunnel
    func tunnels(of caller: AgentCaller) async -> [Tunnel]
    func close(_ id: String, of caller: AgentCaller) async throws
}
