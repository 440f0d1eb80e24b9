import JSON
import Model
import AccessControl

/// `endpoint_pair`: what stands between an agent and an app. It never gives a token back.
extension BrokerMCPServer {
    enum PairingState: String {
        /// It may be called.
        case paired
        /// Its token is kept, and it could not be asked whether it takes it.
        case kept
        /// It wants its token.
        case needsCode = "needs_code"
        /// A person has to say yes.
        case needsApproval = "needs_approval"
        /// The caller may not.
        case denied
    }

    func pair(_ arguments: ToolArguments, _ caller: AgentCaller) async throws(ToolError) -> ToolResult {
        try check(.registryRead, caller)
        let endpoint = try await endpoint(try arguments.required("endpoint"), caller)
        guard let code = try arguments.text("code") else { return await state(of: endpoint, caller) }
        guard caller.may(.secretUse) else {
            return Self.result(.denied, endpoint, "what you were granted does not allow secret.use")
        }
        let isTaken: Bool?
        do {
            let pasted = SessionTokenInput(code)
            let secret = try EndpointSecret(pasted.token)
            // One that names another port is for a launch that is not there yet.
            let isForLaunch = pasted.port == nil || pasted.port == endpoint.routes.first?.port
            isTaken = isForLaunch ? await apps.takes(secret, at: endpoint, for: caller) : nil
            if isTaken == false {
                return Self.result(
                    .needsCode,
                    endpoint,
                    "the app does not take that token, so it was not kept; \(Self.wherefrom(endpoint.id))"
                )
            }
            // A bare token is for the launch that takes it, which may be one that has not been seen.
            let isForUnseen = isTaken == nil && pasted.port == nil
            try await trust.keep(secret, of: endpoint, on: pasted.port, isForUnseen: isForUnseen, for: caller)
        } catch {
            // Whatever the code was, it is not said again.
            throw ToolError("\(endpoint.id) was not paired: \(error)")
        }
        guard isTaken == true else {
            return Self.result(.kept, endpoint, "the app cannot be asked now; endpoint_wait for it, then endpoint_call")
        }
        return Self.result(.paired, endpoint, "the app takes the token; it is kept for this launch")
    }

    private func state(of endpoint: Endpoint, _ caller: AgentCaller) async -> ToolResult {
        let id = endpoint.id
        guard endpoint.approval == .approved else {
            return Self.result(.needsApproval, endpoint, "a person has to type: patchbay approve \(id)")
        }
        let isOpen: Bool
        switch await apps.isOpen(endpoint, for: caller) {
        case let answer?: isOpen = answer
        // It cannot be asked: what its advert says has to do.
        case nil:
            let needsToken = endpoint.wantsToken && caller.may(.secretUse, on: endpoint)
            isOpen = if needsToken { await !trust.held(of: [endpoint]).isEmpty } else { !endpoint.wantsToken }
        }
        if isOpen { return Self.result(.paired, endpoint, "endpoint_call can be used") }
        guard caller.may(.secretUse, on: endpoint) else {
            return Self.result(
                .denied,
                endpoint,
                "it wants its token, and what you were granted does not allow secret.use"
            )
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
