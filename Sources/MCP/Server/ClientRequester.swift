import JSON
import SystemIO

/// The way on which an app asks the one who asked it, while the request runs.
package struct ClientRequester: Sendable {
    typealias Question =
        @Sendable (_ method: String, _ params: JSONObject?, _ isBound: Bool) async ->
        Result<JSON, RPCError>

    /// What joins the requests of one client of one holder: they have one session at an app, and share it with nobody.
    let key: String
    /// What the client and we agreed on, which is what an app is asked to speak.
    let revision: ProtocolVersion
    let faculties: ClientCapabilities
    /// Whether everything under that key is one client, so that any of its requests may carry a question; else each has a
    /// session of its own while it runs.
    let isOneClient: Bool
    /// Whether results that ask (2026-07-28, `input_required`) are answered on this way too; else they are passed on.
    let takesResults: Bool
    /// Brings a question to the client, and its answer back: one that is bound to the request ends with it, another may be
    /// about any request of that client. A cancelled task means that nobody wants the answer any more.
    let ask: Question
}

/// Asking a client of the eras of the handshake, on the stream of its own request.
extension StreamableHTTPTransport {
    /// The way back to the client of a request; nil where it cannot be asked anything, and has no wishes of its own (a log
    /// level). Without a request that runs there is nobody to ask, and still it is this client.
    func wayBack(of inquiry: ParsedRequest, _ running: InFlightRequest?, hasWishes: Bool) -> ClientRequester? {
        guard case .handshake(let revision) = inquiry.era, let session = inquiry.session,
            hasWishes || !inquiry.faculties.isEmpty
        else { return nil }
        return ClientRequester(
            key: session.id,
            revision: revision,
            faculties: inquiry.faculties,
            isOneClient: true,
            takesResults: true
        ) { method, params, isBound in
            guard let running else { return .failure(.inside("nothing runs during which this could be asked")) }
            return await ask(method, params, of: session, during: isBound ? running : nil)
        }
    }

    /// Answers with an error when the request has ended before the client has answered. What belongs to none of the client's
    /// requests goes over the stream of any.
    private func ask(
        _ method: String,
        _ params: JSONObject?,
        of session: SessionStore.Session,
        during running: InFlightRequest?
    ) async -> Result<JSON, RPCError> {
        let answer = Promise<Result<JSON, RPCError>>()
        guard let id = await sessions.pose(to: session, { answer.settle(.success($0)) }) else {
            return .failure(.inside("\(SessionStore.questionLimit) questions are before this client already"))
        }
        let question = RPCRequest(id: id, method: method, params: params)
        running?.ending.join(answer)
        let isAsked =
            if let running { running.tell(.request(question)) } else {
                await sessions.tell(.request(question), to: session)
            }
        if !isAsked {
            answer.settle(.success(.failure(.inside("the client does not read what it is told"))))
        }
        let outcome: Result<JSON, RPCError>
        do { outcome = try await answer.value() } catch {
            // The client need not go on with it.
            let end = RPCNotification(method: "notifications/cancelled", params: ["requestId": id.json])
            if let running {
                running.tell(.notification(end))
            } else {
                await sessions.tell(.notification(end), to: session)
            }
            outcome = .failure(.inside("nobody waits for this any more"))
        }
        running?.ending.leave(answer)
        await sessions.withdraw(id, of: session)
        return outcome
    }
}
