import Client
import Model

/// Resolves the MCP server of each request. The only state is the endpoint that was chosen for an app.
actor TargetResolver {
    /// The result of a resolution.
    enum Resolution {
        case server(MCPTarget)
        /// The client has to choose one of these: several phones run the app, or the chosen endpoint is gone.
        case several([Endpoint], gone: EndpointID?)
    }

    nonisolated let subject: MCPSubject
    private let makeClient: @Sendable () throws(CLIError) -> PatchbayClient
    /// The chosen endpoint of the app. A rebuild, a replug and another phone do not change it.
    private var choice: EndpointID?
    private var changeHandlers: [AsyncStream<Never>.Continuation] = []
    /// The endpoint whose tools the client saw last.
    private var listed: EndpointID?

    /// - Parameters:
    ///   - subject: The served app or apps.
    ///   - makeClient: Returns the client of a request. The grant may be stored while the command runs.
    init(_ subject: MCPSubject, makeClient: @escaping @Sendable () throws(CLIError) -> PatchbayClient) {
        self.subject = subject
        self.makeClient = makeClient
    }

    /// Returns the client for a request.
    ///
    /// - Throws: `CLIError` if a grant is required and none is stored.
    nonisolated func client() throws(CLIError) -> PatchbayClient { try makeClient() }

    /// Resolves the server with the broker's current list.
    ///
    /// - Throws: `CLIError`, `ClientError`.
    func resolve(with client: PatchbayClient) async throws -> Resolution {
        switch subject {
        case .broker: return .server(.broker)
        case .all: return .server(.all)
        case .endpoint(let text): return .server(.endpoint(try await endpoint(text, client)))
        case .app(let name):
            let endpoints = try await client.endpoints().endpoints
            if let choice, let known = Self.endpoint(choice, in: endpoints) { return .server(.endpoint(known)) }
            let found = try AppEndpoints(of: name, among: endpoints)
            // What remains may be another app with the same name.
            guard choice == nil else { return .several(found.candidates, gone: choice) }
            let leases = found.candidates.count > 1 ? await ownLeases(client) : []
            guard let only = found.automaticChoice(leases: leases) else { return .several(found.candidates, gone: nil) }
            choose(only.id)
            return .server(.endpoint(only.id))
        }
    }

    /// Returns the endpoints that a client may choose; empty if there is no choice to make.
    func alternatives(_ client: PatchbayClient) async -> [Endpoint] {
        guard case .app(let name) = subject, let endpoints = try? await client.endpoints().endpoints else { return [] }
        let found = endpoints.filter { $0.isApp(name) && $0.approval.wasApproved }
        let isGone = choice.map { Self.endpoint($0, in: endpoints) == nil } ?? false
        return found.count > 1 || isGone ? found.sorted { $0.id < $1.id } : []
    }

    /// Uses an endpoint for the rest of the session.
    func choose(_ id: EndpointID) {
        guard choice != id else { return }
        choice = id
        for handler in changeHandlers { handler.finish() }
        changeHandlers = []
    }

    /// Records the endpoint whose tools the client has seen.
    func didList(_ target: MCPTarget) { if case .endpoint(let id) = target { listed = id } }

    /// Returns once whether the client has seen the tools of another endpoint.
    func takeStaleList(for target: MCPTarget) -> Bool {
        guard case .endpoint(let id) = target, let listed, id != listed else { return false }
        self.listed = nil
        return true
    }

    /// Returns a stream that finishes when another endpoint is chosen.
    func choiceChange() -> AsyncStream<Never> {
        let (stream, continuation) = AsyncStream.makeStream(of: Never.self)
        changeHandlers.append(continuation)
        return stream
    }

    private func endpoint(_ text: String, _ client: PatchbayClient) async throws -> EndpointID {
        do {
            let list = try await client.endpoints().endpoints
            return try EndpointSelector(text: text, command: "patchbay mcp --endpoint").choose(among: list).id
        } catch ClientError.refused(let problem) where problem.code == .forbidden {
            // A grant without registry.read has no list. The broker resolves a full ID.
            guard let id = EndpointID(text) else { throw ClientError.refused(problem) }
            return id
        }
    }

    /// Returns the leases of the client's grant. An owner's lease is a person's, and keeps the person's own agents out.
    private func ownLeases(_ client: PatchbayClient) async -> [Lease] {
        guard let leases = try? await client.leases.list(), leases.contains(where: \.isOwn),
            (try? await client.ownGrant()) != nil
        else { return [] }
        return leases
    }

    private static func endpoint(_ id: EndpointID, in endpoints: [Endpoint]) -> EndpointID? {
        let parts = endpoints.flatMap { $0.combinedWith ?? [] }
        return (endpoints + parts).first { $0.isCalled(id.text) }?.id
    }
}
