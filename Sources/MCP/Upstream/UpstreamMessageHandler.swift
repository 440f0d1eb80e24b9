import AccessControl
import JSON

/// Handles notifications and requests of an app that arrive during a request.
struct UpstreamMessageHandler: Sendable {
    /// The ID of the request, which is also its progress token.
    private let id: RPCID?
    private let session: UpstreamSession
    private let routes: [AuthorizedRoute]
    /// Returns the forwarder to the client; nil if the app cannot send requests to a client.
    private let forwarder: @Sendable () -> ClientRequestForwarder?
    private let notify: (@Sendable (RPCNotification) -> Void)?
    /// Removes the session token from messages.
    let redactor: TokenRedactor
    private let schedule: @Sendable (BackgroundTask) -> Void
    private let onChange: @Sendable (ServerChange) -> Void

    init(
        _ id: RPCID?,
        session: UpstreamSession,
        routes: [AuthorizedRoute],
        forwarder: @escaping @Sendable () -> ClientRequestForwarder? = { nil },
        notify: (@Sendable (RPCNotification) -> Void)?,
        schedule: @escaping @Sendable (BackgroundTask) -> Void,
        onChange: @escaping @Sendable (ServerChange) -> Void
    ) {
        self.id = id
        self.session = session
        self.routes = routes
        redactor = TokenRedactor(routes)
        self.forwarder = forwarder
        self.notify = notify
        self.schedule = schedule
        self.onChange = onChange
    }

    func handle(_ message: RPCMessage) {
        switch message {
        case .notification(let notification): handle(notification)
        case .request(let request): respond(to: request)
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
    private func respond(to request: RPCRequest) {
        if request.method == "ping" {
            return schedule(.notify(session, .response(id: request.id, .success([:])), routes))
        }
        do throws(RPCError) {
            guard let forwarder = forwarder() else { throw .methodNotFound(request.method) }
            schedule(.forwardClientRequest(try forwarder.accept(request), session, routes))
        } catch {
            schedule(.notify(session, .response(id: request.id, .failure(error)), routes))
        }
    }
}
