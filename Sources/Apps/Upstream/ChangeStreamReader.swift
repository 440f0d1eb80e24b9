import Model

/// Reads the stream on which a server announces its changes, once. The message handler receives the changes.
struct ChangeStreamReader: Sendable {
    let server: ServerInfo
    /// The resources to be notified about.
    let uris: [String]
    let limits: ResponseLimits
    /// Called when the stream is open.
    let opened: @Sendable () -> Void
    let newID: @Sendable () async -> JSONNumber
    let send: @Sendable (UpstreamMessage) async throws -> UpstreamResponse
    /// Cancels a request at the server.
    let cancel: @Sendable (JSONNumber) -> Void

    /// Reads until the stream ends.
    ///
    /// - Returns: The status, 405 without such a stream; nil after an idle timeout.
    /// - Throws: `AppError`, `CancellationError`.
    func read() async throws -> Int? {
        server.protocolVersion.isStateless ? try await listen() : try await readSessionStream()
    }

    /// Reads the GET stream of a session-mode server.
    private func readSessionStream() async throws -> Int? {
        for uri in uris {
            // A new session has no subscriptions. For an old session the request is redundant.
            let params: JSONObject = ["uri": .string(uri)]
            _ = try await send(UpstreamMessage("resources/subscribe", params, id: await newID(), to: server))
        }
        var message = UpstreamMessage(response: nil, to: server)
        message.limits = limits
        message.opened = opened
        do { return try await send(message).status } catch AppError.timedOut { return nil }
    }

    /// Reads the `subscriptions/listen` stream of a stateless server.
    private func listen() async throws -> Int? {
        var filter: JSONObject = ["toolsListChanged": true, "promptsListChanged": true, "resourcesListChanged": true]
        if !uris.isEmpty { filter["resourceSubscriptions"] = .array(uris.map { .string($0) }) }
        var params: JSONObject = ["notifications": .object(filter)]
        params["_meta"] = server.meta(nil, capabilities: [:]).map { .object($0) }
        let number = await newID()
        var message = UpstreamMessage("subscriptions/listen", params, id: number, to: server)
        message.limits = server.transport == .lines ? .lineChangeStream : limits
        message.opened = opened
        let response: UpstreamResponse
        do {
            response = try await send(message)
        } catch {
            if server.transport == .lines { cancel(number) }
            guard let failure = error as? AppError, failure.isTimeout else { throw error }
            return nil
        }
        // An error means that the server has no such stream, regardless of the status.
        guard case .failure? = response.outcome else { return response.status }
        return 405
    }
}

extension ServerInfo {
    /// Indicates whether the server announces changes.
    var announcesChanges: Bool { !announcedChanges.isEmpty || capabilities["resources"]?["subscribe"] == true }

    /// The changes of lists that the server announces.
    var announcedChanges: [ServerChange] {
        let all: [(String, ServerChange)] = [("tools", .tools), ("prompts", .prompts), ("resources", .resources)]
        return all.filter { capabilities[$0.0]?["listChanged"] == true }.map(\.1)
    }
}
