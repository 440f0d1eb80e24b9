import Client
import Model
import SystemIO

/// Chooses the endpoint of an app: by itself, or with a question to the client.
struct EndpointChooser: Sendable {
    let connector: ServerConnector
    let output: LineWriter
    /// One question at a time. The calls behind it use its answer.
    private let questions = AsyncSemaphore(permits: 1)

    init(connector: ServerConnector, output: LineWriter) {
        self.connector = connector
        self.output = output
    }

    private var session: BridgeSession { connector.session }
    private var resolver: TargetResolver { connector.resolver }

    /// Returns the server of a message.
    ///
    /// - Parameters:
    ///   - message: The message.
    ///   - client: The client of the request.
    ///   - written: Called before a wait for the client, whose answer is a later message.
    /// - Returns: Nil if the client has to repeat the request with an answer.
    /// - Throws: `CLIError`, with the candidates if the client cannot be asked or did not choose; `ClientError`.
    func target(of message: ClientMessage, _ client: PatchbayClient, _ written: () -> Void) async throws -> MCPTarget? {
        let candidates: [Endpoint]
        let gone: EndpointID?
        switch try await resolver.resolve(with: client) {
        case .server(let target): return target
        case .several(let found, let lost): (candidates, gone) = (found, lost)
        }
        guard message.needsChoice, let id = message.id, case .app(let app) = resolver.subject else {
            return .endpoint(candidates[0].id)
        }
        let question = EndpointQuestion(app: app, candidates: candidates, gone: gone)
        if let answer = message.answer { return try await use(question.choice(in: answer), of: question) }
        let isStateless = message.revision != nil
        let capabilities = isStateless ? message.capabilities : session.current.handshake?.capabilities
        guard EndpointQuestion.isSupported(by: capabilities) else { throw question.failure }
        if isStateless {
            try await output.write(question.inputRequired(by: id).bytes)
            return nil
        }
        written()
        let permit = try await questions.acquire()
        defer { permit.release() }
        if case .server(let target) = try await resolver.resolve(with: client) { return target }
        return try await use(question.choice(in: try await answer(to: question)), of: question)
    }

    /// Chooses the endpoint that an agent names.
    ///
    /// - Throws: `CLIError` if the app has no such endpoint; `ClientError`.
    func choose(_ text: String) async throws -> EndpointID {
        let candidates = await resolver.alternatives(try resolver.client())
        let chosen = try EndpointSelector(text: text, command: BridgeTool.choose).choose(among: candidates)
        await resolver.choose(chosen.id)
        return chosen.id
    }

    private func use(_ choice: EndpointID?, of question: EndpointQuestion) async throws -> MCPTarget {
        guard let choice else { throw question.failure }
        await resolver.choose(choice)
        return .endpoint(choice)
    }

    /// Asks the client and returns its `ElicitResult`; nil after an error.
    private func answer(to question: EndpointQuestion) async throws -> JSON? {
        let (id, answer) = session.update { $0.beginQuestion() }
        try await output.write(question.request(id: id).bytes)
        do {
            return try await answer.value()["result"]
        } catch {
            // The call that needs the answer was cancelled.
            let cancel: JSON = [
                "jsonrpc": "2.0", "method": "notifications/cancelled", "params": ["requestId": id],
            ]
            try await output.write(cancel.bytes)
            throw error
        }
    }
}
