import JSON

/// Something to ask an app.
struct AppRequest: Sendable {
    let method: String
    /// Without what belongs to an era.
    let params: JSONObject
    /// What the client can do for an app of the stateless era that asks back.
    let capabilities: JSONObject
    let notify: (@Sendable (RPCNotification) -> Void)?

    init(
        _ method: String,
        _ params: JSONObject = [:],
        capabilities: JSONObject = [:],
        notify: (@Sendable (RPCNotification) -> Void)? = nil
    ) {
        self.method = method
        self.params = params
        self.capabilities = capabilities
        self.notify = notify
    }

    init(_ request: AgentRequest) {
        self.init(request.method, request.params, capabilities: request.capabilities, notify: request.notify)
    }

    /// What it is for the audit log: a tool's name, else the method.
    var subject: String { tool ?? method }

    /// Whether the app may get it twice; only what it says of a tool allows that of a call.
    func mayRepeat(_ traits: ToolTraits) -> Bool { tool == nil || traits.mayRepeat }

    /// The tool that it calls, if it calls one.
    var tool: String? { method == "tools/call" ? params["name"]?.string : nil }
}
