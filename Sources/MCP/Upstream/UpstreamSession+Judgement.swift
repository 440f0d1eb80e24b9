import JSON
import Model
import AccessControl

/// What an answer means.
extension UpstreamSession {
    static func noRoute(to endpoint: Endpoint) -> DialError {
        DialError(.noRoute, "\(endpoint.id) has no route now; start the app, or see `patchbay show \(endpoint.id)`")
    }

    /// How an answer shows that the server knows nothing of what was agreed with the one before it.
    enum Misfit: Hashable, Sendable {
        /// The protocol says that the request was not processed.
        case unprocessed
        /// The words of the error sound so; nothing says that the request was not processed.
        case perhaps
    }

    static func misfit(of answer: UpstreamResponse, _ known: ServerInfo) -> Misfit? {
        // MCP 2025-03-26 and later, session management: 404 means that a new session must be begun.
        if answer.status == 404, known.sessionID != nil { return .unprocessed }
        guard answer.status == 400, case .failure(let error)? = answer.outcome else { return nil }
        // HeaderMismatch and UnsupportedProtocolVersion of 2026-07-28; servers before it say in words what they miss.
        if error.code == -32_020 || error.code == -32_022 { return .unprocessed }
        let words = error.message.lowercased()
        return ["session", "_meta", "protocol"].contains { words.contains($0) } ? .perhaps : nil
    }

    /// - Throws: `Trouble`.
    static func reply(_ answer: UpstreamResponse, _ passages: [AuthorizedRoute]) throws(Trouble) -> AppReply {
        if let trouble = refusal(answer, passages) { throw trouble }
        switch answer.outcome {
        case .success(let result)?:
            guard let object = result.object else { throw .unclear("a result that is no object") }
            return AppReply(outcome: .success(object), size: answer.size, permit: answer.permit)
        case .failure(let error)?: return AppReply(outcome: .failure(error), size: answer.size)
        case nil: throw .unclear("status \(answer.status)")
        }
    }

    /// What the status alone says.
    static func refusal(_ answer: UpstreamResponse, _ passages: [AuthorizedRoute]) -> Trouble? {
        switch answer.status {
        case 401: .wantsSecret(passages.contains { $0.secret != nil } ? .rejected : .missing)
        case 300..<400: .unclear("a redirection, which is not followed")
        default: nil
        }
    }

    /// Whether the request may be at work in the app while nobody waits for it.
    static func isGivenUp(_ error: any Error) -> Bool {
        if case Trouble.silent = error { return true }
        return error is CancellationError
    }
}
