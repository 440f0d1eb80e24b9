import JSON
import Model
import Pairing

/// `endpoint_pair`: what stands between an agent and an app. It never gives a token back.
extension BrokerServer {
    enum PairingState: String {
        /// It may be called.
        case paired
        /// It wants its token.
        case needsCode = "needs_code"
        /// A person has to say yes.
        case needsApproval = "needs_approval"
        /// The caller may not.
        case denied
    }

    func pair(_ arguments: ToolArguments, _ caller: AgentCaller) async throws(ToolRefusal) -> ToolResult {
        try check(.registryRead, caller)
        let endpoint = try await endpoint(try arguments.required("endpoint"), caller)
        guard let code = try arguments.text("code") else { return await state(of: endpoint, caller) }
        guard caller.may(.secretUse) else {
            return Self.result(.denied, endpoint, "what you were granted does not allow secret.use")
        }
        do {
            let pasted = PastedSecret(code)
            let secret = try EndpointSecret(pasted.token)
            // One that names another port is for a launch that is not there yet.
            let isForLaunch = pasted.port == nil || pasted.port == endpoint.routes.first?.port
            if isForLaunch, await apps.takes(secret, at: endpoint, for: caller) == false {
                return Self.result(
                    .needsCode,
                    endpoint,
                    "the app does not take that token, so it was not kept; \(Self.wherefrom(endpoint.id))"
                )
            }
            try await trust.keep(secret, of: endpoint, on: pasted.port, for: caller)
        } catch {
            // Whatever the code was, it is not said again.
            throw ToolRefusal("\(endpoint.id) was not paired: \(error)")
        }
        return Self.result(.paired, endpoint, "the token is kept for this launch of the app")
    }

    private func state(of endpoint: Endpoint, _ caller: AgentCaller) async -> ToolResult {
        let id = endpoint.id
        guard endpoint.approval == .approved else {
            return Self.result(.needsApproval, endpoint, "a person has to type: patchbay approve \(id)")
        }
        guard endpoint.wantsToken, await trust.held(of: [endpoint]).isEmpty else {
            return Self.result(.paired, endpoint, "endpoint_call can be used")
        }
        return Self.result(.needsCode, endpoint, Self.wherefrom(id))
    }

    private static func wherefrom(_ id: EndpointID) -> String {
        """
        the app logs "Session URL: …" at each launch; give the newest here as code, or ask the person to type: \
        patchbay secret set \(id)
        """
    }

    private static func result(_ state: PairingState, _ endpoint: Endpoint, _ next: String) -> ToolResult {
        ToolResult(
            "\(endpoint.id) \(state.rawValue): \(next)",
            ["endpoint": .string(endpoint.id.text), "state": .string(state.rawValue), "next": .string(next)]
        )
    }
}
