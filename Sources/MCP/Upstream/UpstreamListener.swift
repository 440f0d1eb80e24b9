import JSON
import Pairing

/// Heeds what an app says while it is being asked something.
struct UpstreamListener: Sendable {
    /// Of the request; its progress token, too.
    private let id: RPCID?
    private let line: AppLine
    private let passages: [Passage]
    private let notify: (@Sendable (RPCNotification) -> Void)?
    private let send: @Sendable (Errand) -> Void
    private let tell: @Sendable (ServerChange) -> Void

    init(
        _ id: RPCID?,
        line: AppLine,
        passages: [Passage],
        notify: (@Sendable (RPCNotification) -> Void)?,
        send: @escaping @Sendable (Errand) -> Void,
        tell: @escaping @Sendable (ServerChange) -> Void
    ) {
        self.id = id
        self.line = line
        self.passages = passages
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
        case "notifications/tools/list_changed": tell(.tools)
        case "notifications/prompts/list_changed": tell(.prompts)
        case "notifications/resources/list_changed": tell(.resources)
        case "notifications/resources/updated":
            if let uri = notification.params?["uri"]?.string { tell(.resource(uri)) }
        default: break
        }
    }

    /// An app of the handshake's eras may ask back. We told it that we can do nothing for it, so that only `ping` is left.
    private func answer(_ request: RPCRequest) {
        let outcome: Result<JSON, RPCError> =
            request.method == "ping" ? .success([:]) : .failure(.unknownMethod(request.method))
        send(.tell(line, .response(id: request.id, outcome), passages))
    }
}
