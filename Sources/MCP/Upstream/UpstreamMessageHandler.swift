import AccessControl
import JSON

/// Heeds what an app says while it is being asked something.
struct UpstreamMessageHandler: Sendable {
    /// Of the request; its progress token, too.
    private let id: RPCID?
    private let line: UpstreamSession
    private let passages: [AuthorizedRoute]
    /// Who is asked what the app wants to know; nil where it can ask nobody.
    private let inquirer: @Sendable () -> ClientRequestForwarder?
    private let notify: (@Sendable (RPCNotification) -> Void)?
    /// For what the app says.
    let redactor: TokenRedactor
    private let send: @Sendable (BackgroundTask) -> Void
    private let tell: @Sendable (ServerChange) -> Void

    init(
        _ id: RPCID?,
        line: UpstreamSession,
        passages: [AuthorizedRoute],
        inquirer: @escaping @Sendable () -> ClientRequestForwarder? = { nil },
        notify: (@Sendable (RPCNotification) -> Void)?,
        send: @escaping @Sendable (BackgroundTask) -> Void,
        tell: @escaping @Sendable (ServerChange) -> Void
    ) {
        self.id = id
        self.line = line
        self.passages = passages
        redactor = TokenRedactor(passages)
        self.inquirer = inquirer
        self.notify = notify
        self.send = send
        self.tell = tell
    }

    func heed(_ message: RPCMessage) {
        switch message {
        case .notification(let notification): heed(notification)
        case .request(let request): answer(request)
        case .response: break
        }
    }

    private func heed(_ notification: RPCNotification) {
        switch notification.method {
        case "notifications/progress":
            guard var params = notification.params, let id, params["progressToken"] == id.json else { return }
            params["progressToken"] = nil
            notify?(RPCNotification(method: notification.method, params: params))
        case "notifications/message": notify?(notification)
        case "notifications/cancelled":
            if let id = notification.params?["requestId"].flatMap(RPCID.init) { inquirer()?.withdraw(id) }
        case "notifications/tools/list_changed": tell(.tools)
        case "notifications/prompts/list_changed": tell(.prompts)
        case "notifications/resources/list_changed": tell(.resources)
        case "notifications/resources/updated":
            if let uri = notification.params?["uri"]?.string { tell(.resource(uri)) }
        default: break
        }
    }

    /// An app of the handshake's eras may ask back: us whether we are there, and the caller what we told it of that one.
    private func answer(_ request: RPCRequest) {
        if request.method == "ping" { return send(.tell(line, .response(id: request.id, .success([:])), passages)) }
        do throws(RPCError) {
            guard let inquirer = inquirer() else { throw .unknownMethod(request.method) }
            send(.ask(try inquirer.open(request), line, passages))
        } catch {
            send(.tell(line, .response(id: request.id, .failure(error)), passages))
        }
    }
}
