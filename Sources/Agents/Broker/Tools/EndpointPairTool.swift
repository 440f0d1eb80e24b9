import AccessControl
import Apps
import Model

/// Reports why an app cannot be called, and accepts its token. The token is never returned.
struct EndpointPairTool: BrokerTool {
    /// The member `state` of the result.
    enum PairingState: String {
        /// The app can be called.
        case paired
        /// The token is stored, but the app could not be asked whether it accepts the token.
        case kept
        /// The app requires its token.
        case needsCode
        /// A person has to approve the endpoint.
        case needsApproval
        /// The principal has no permission, or an owner has denied the endpoint.
        case denied
    }

    private static let endpoint = ToolParameter.endpoint
    private static let code = ToolParameter.text("code", "token or Session URL")

    let definition = ToolDefinition(
        name: "endpoint_pair",
        description: "Says why an app cannot be called; takes its launch token.",
        scope: .registryRead,
        required: [Self.endpoint.property],
        optional: [Self.code.property],
        annotations: ["destructiveHint": false]
    )
    let directory: EndpointDirectory
    let apps: any AppCaller
    let approvals: any EndpointApprovalStore

    func call(_ request: ToolRequest, for principal: Principal) async throws(ToolError) -> ToolResult {
        let endpoint = try await directory.endpoint(
            of: request,
            for: principal,
            takesUnapproved: true
        )
        guard let code = try request[Self.code] else { return await state(of: endpoint, for: principal) }
        guard principal.may(.secretUse) else {
            return Self.result(.denied, for: endpoint, next: "your grant does not allow secret.use")
        }
        if let host = endpoint.id.host {
            let command = "patchbay secret set \(endpoint.id.onItsHost)"
            return Self.result(.denied, for: endpoint, next: "a person has to type on the host \(host): \(command)")
        }
        do { return try await save(SessionTokenInput(code), of: endpoint, for: principal) } catch {
            // The error must not contain the token.
            throw ToolError("\(endpoint.id) was not paired: \(error)")
        }
    }

    /// Stores a token, unless the app rejects it.
    private func save(
        _ input: SessionTokenInput,
        of endpoint: Endpoint,
        for principal: Principal
    ) async throws -> ToolResult {
        let secret = try EndpointSecret(input.token)
        // A token with another port belongs to a launch that is not visible yet.
        let isForLaunch = input.port == nil || input.port == endpoint.routes.first?.port
        if isForLaunch, await apps.requiresNoSecret(endpoint, for: principal) {
            return Self.result(
                .paired,
                for: endpoint,
                next: "the app requires no token, so the code was not stored; endpoint_call can be used"
            )
        }
        let isAccepted = isForLaunch ? await apps.accepts(secret, at: endpoint, for: principal) : nil
        if isAccepted == false {
            return Self.result(
                .needsCode,
                for: endpoint,
                next: "the app rejects that token, so the token was not stored; \(tokenHint(of: endpoint))"
            )
        }
        // A token without a port belongs to the launch that accepts it, which may not have been seen yet.
        let isForUnseen = isAccepted == nil && input.port == nil
        try await approvals.saveSecret(
            secret,
            of: endpoint,
            on: input.port,
            isForUnseen: isForUnseen,
            for: principal
        )
        guard isAccepted == true else {
            // A profile's server is not asked, because its token may work only once.
            let reason = apps.requiresSecret(endpoint) ? "" : "the app is not reachable now, so "
            return Self.result(
                .kept,
                for: endpoint,
                next: "\(reason)the token is stored unchecked; use endpoint_wait, then endpoint_call"
            )
        }
        return Self.result(.paired, for: endpoint, next: "the app accepts the token, which is stored for this launch")
    }

    /// Reports whether the endpoint can be called, and the next step if it cannot.
    private func state(of endpoint: Endpoint, for principal: Principal) async -> ToolResult {
        guard endpoint.state != .blocked else {
            let reason = endpoint.reason ?? "no address that may be dialled"
            return Self.result(.denied, for: endpoint, next: "it is blocked and cannot be approved: \(reason)")
        }
        guard endpoint.approval != .denied else {
            return Self.result(.denied, for: endpoint, next: "an owner has denied its address")
        }
        guard endpoint.approval == .approved else {
            let place = endpoint.location.device.map { "if \($0) is the right device, " } ?? ""
            let command = ApprovalPolicy.command(toApprove: endpoint)
            return Self.result(.needsApproval, for: endpoint, next: "\(place)a person has to type: \(command)")
        }
        let isOpen: Bool
        switch await apps.isOpen(endpoint, for: principal) {
        case let answer?: isOpen = answer
        // The app cannot be asked, so its advertisement decides.
        case nil:
            let needsToken = endpoint.wantsToken && principal.may(.secretUse, on: endpoint)
            isOpen =
                if needsToken { await !approvals.withSecrets(among: [endpoint]).isEmpty } else { !endpoint.wantsToken }
        }
        if isOpen {
            let limit = principal.tools == .all ? "" : ", for \(principal.tools) only"
            return Self.result(.paired, for: endpoint, next: "endpoint_call can be used\(limit)")
        }
        guard principal.may(.secretUse, on: endpoint) else {
            return Self.result(
                .denied,
                for: endpoint,
                next: "the app requires its token, and your grant does not allow secret.use"
            )
        }
        return Self.result(.needsCode, for: endpoint, next: tokenHint(of: endpoint))
    }

    private func tokenHint(of endpoint: Endpoint) -> String {
        // Only AppReveal logs a session URL.
        let source =
            apps.requiresSecret(endpoint)
            ? "give the token of the app's current launch here as code"
            : "the app logs a URL with appreveal_session_token at each launch; give the newest here as code"
        return "\(source), or ask the person to type: patchbay secret set \(endpoint.id)"
    }

    private static func result(_ state: PairingState, for endpoint: Endpoint, next: String) -> ToolResult {
        ToolResult(
            "\(endpoint.id) \(state.rawValue): \(next)",
            ["endpoint": .string(endpoint.id.text), "state": .string(state.rawValue), "hint": .string(next)]
        )
    }
}
