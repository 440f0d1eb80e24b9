import JSON
import Model
import AccessControl
import Synchronization

/// Lines that are one caller's alone.
extension AppProxy {
    /// What apps may ask during, and what counts for one session; everything else goes over the line of everybody's.
    private static let personal: Set = ["tools/call", "prompts/get", "resources/read", "logging/setLevel"]

    /// Asks over the caller's own line where the app may have questions to it, else over everybody's.
    ///
    /// - Throws: `Trouble`, `CancellationError`.
    func ask(
        _ request: MCPRequest,
        of endpoint: Endpoint,
        for caller: AgentCaller,
        over line: UpstreamSession,
        by admission: Admission,
        _ traits: ToolAnnotations
    ) async throws -> AppReply {
        guard let wayBack = request.wayBack, Self.personal.contains(request.method),
            let (key, own) = try await enter(wayBack, endpoint, caller, line, admission.passages)
        else { return try await line.ask(request, of: endpoint, by: admission, traits) }
        defer { owns.withLock { $0.leave(key, own, at: watch.elapsed) } }
        return try await own.ask(request, of: endpoint, by: admission, traits)
    }

    /// - Returns: Nil when the app has no sessions, without which it can ask nobody.
    private func enter(
        _ wayBack: ClientRequester,
        _ endpoint: Endpoint,
        _ caller: AgentCaller,
        _ line: UpstreamSession,
        _ passages: [AuthorizedRoute]
    ) async throws -> (ClientSessionPool.Key, UpstreamSession)? {
        let known = try await line.meet(endpoint, by: passages)
        // A server of both eras asks a client of the handshake's as it would without us; one of 2026-07-28 by its results.
        guard case .http(let path) = known.place,
            await line.mayHaveSessions(known, speaking: wayBack.takesResults)
        else { return nil }
        let client = ClientSessionPool.Key(endpoint: endpoint.id, holder: caller.holder, client: wayBack.key)
        let handshake = ClientSessionParameters(path: path, revision: wayBack.revision, faculties: wayBack.faculties)
        let (isFirst, entered) = try owns.withLock { owns throws(Trouble) in
            (
                owns.isEmpty,
                try owns.enter(client, isShared: wayBack.isOneClient, at: watch.elapsed) {
                    makeLine(to: endpoint.id, own: handshake)
                }
            )
        }
        let (key, own, retired) = entered
        if isFirst { send(.retire) }
        for (id, line) in retired { retire(line, of: id) }
        do {
            if try await own.meet(endpoint, by: passages).sessionID != nil { return (key, own) }
        } catch Trouble.noMCP {
        } catch {
            owns.withLock { $0.leave(key, own, at: watch.elapsed) }
            throw error
        }
        owns.withLock { $0.remove(key, own) }
        await line.noteNoSessions()
        return nil
    }

    /// Gives up what nobody has used for long, until nothing is left.
    func retireIdle() async {
        repeat {
            guard (try? await clock.sleep(for: ClientSessionPool.lifetime / 10)) != nil else { return }
            for (id, line) in owns.withLock({ $0.expire(at: watch.elapsed) }) { retire(line, of: id) }
        } while !owns.withLock { $0.isEmpty }
    }

    /// Ends the session at the app, if the app is there and may be reached; whoever it was for is not asked for it any more.
    func retire(_ line: UpstreamSession, of id: EndpointID) {
        send(
            .run { [self] in
                guard let endpoint = try? await endpoint(id),
                    let (_, clearance) = try? await admit(.broker, to: endpoint)
                else { return await line.retire(by: []) }
                await line.retire(by: clearance.passages)
            }
        )
    }
}
