import Model

/// Handles notifications and requests of an app that arrive during a message to the app.
struct UpstreamMessageHandler: Sendable {
    /// The ID of the request, which is also its progress token.
    var id: RPCID?
    /// Removes the session token from messages.
    var redactor = TokenRedactor([])
    /// Returns the forwarder to the client; nil if the app cannot send requests to a client.
    var forwarder: @Sendable () -> ClientRequestForwarder? = { nil }
    /// Returns the delay by requests to the client.
    var pause: @Sendable () -> ClientRequestForwarder.Pause = { ClientRequestForwarder.Pause() }
    var notify: (@Sendable (RPCNotification) -> Void)?
    /// Receives announced changes.
    var onChange: @Sendable (ServerChange) -> Void = { _ in }
    /// Sends the app a response.
    var respond: @Sendable (RPCMessage) -> Void = { _ in }
    /// Starts an accepted request to the client.
    var forward: @Sendable (ClientRequestForwarder.PendingRequest) -> Void = { _ in }

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
            if let id = notification.params?["requestId"].flatMap(RPCID.init) { forwarder()?.cancel(id) }
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
        if request.method == "ping" { return respond(.response(id: request.id, .success([:]))) }
        do throws(RPCError) {
            guard let forwarder = forwarder() else { throw .methodNotFound(request.method) }
            forward(try forwarder.accept(request))
        } catch {
            respond(.response(id: request.id, .failure(error)))
        }
    }
}
