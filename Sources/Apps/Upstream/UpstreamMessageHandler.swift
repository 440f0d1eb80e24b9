import Model

/// Handles notifications and requests of an app that arrive during a message to the app.
struct UpstreamMessageHandler: Sendable {
    /// The ID of the request, which is also its progress token.
    var id: RPCID?
    /// Removes the session token from messages.
    var redactor = TokenRedactor([])
    /// The requests of the app to the client; nil if no client can be asked.
    var appRequests: AppRequests?
    var notify: (@Sendable (RPCNotification) -> Void)?
    /// Receives announced changes.
    var onChange: @Sendable (ServerChange) -> Void = { _ in }
    /// Sends the app a response.
    var respond: @Sendable (RPCMessage) async -> Void = { _ in }
    /// Sends it in the background, with a limit for each app.
    var respondLater: @Sendable (RPCMessage) -> Void = { _ in }

    /// The delay of the response by requests to the client.
    var delay: ClientDelay { appRequests?.delay(of: id) ?? ClientDelay() }

    func handle(_ message: RPCMessage) {
        switch message {
        case .notification(let notification): handle(notification)
        case .request(let request): answer(request)
        case .response: break
        }
    }

    private func handle(_ notification: RPCNotification) {
        switch notification.method {
        case "notifications/progress":
            guard var params = notification.params, let id, params["progressToken"] == id.json else { return }
            params["progressToken"] = nil
            notify?(RPCNotification(method: notification.method, params: params))
        case "notifications/message": notify?(notification)
        case "notifications/cancelled":
            let request = notification.params?["requestId"].flatMap(RPCID.init)
            if let request { appRequests?.cancel(request, during: id) }
        case "notifications/tools/list_changed": onChange(.tools)
        case "notifications/prompts/list_changed": onChange(.prompts)
        case "notifications/resources/list_changed": onChange(.resources)
        case "notifications/resources/updated":
            if let uri = notification.params?["uri"]?.string { onChange(.resource(uri)) }
        default: break
        }
    }

    /// Answers a request of a session-mode app: `ping` directly, all others by the client if its capabilities allow the
    /// method.
    private func answer(_ request: RPCRequest) {
        if request.method == "ping" { return respondLater(.response(id: request.id, .success([:]))) }
        do throws(RPCError) {
            guard let appRequests else { throw .methodNotFound(request.method) }
            try appRequests.accept(request, during: id, respond: respond)
        } catch {
            respondLater(.response(id: request.id, .failure(error)))
        }
    }
}
