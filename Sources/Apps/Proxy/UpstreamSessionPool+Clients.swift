import AccessControl
import Model
import Synchronization
import SystemIO

/// The sessions that each belong to one client, on which an app may send requests to that client.
extension UpstreamSessionPool {
    /// Methods that use a client session: apps may send requests during them, and the log level belongs to a session.
    /// All others use the shared session.
    private static let methodsWithClientRequests: Set = [
        "tools/call", "prompts/get", "resources/read", "logging/setLevel",
    ]

    /// A session in use by a request.
    struct Checkout: Sendable {
        /// The key of a client session; nil for the shared session.
        fileprivate var key: ClientSessionPool.Key?
        let session: UpstreamSession
    }

    /// Returns the session for a request: the one of its client if the app may ask that client, otherwise the shared one.
    /// Call `checkIn` after use.
    ///
    /// - Throws: `AppError`, `CancellationError`.
    func checkOut(
        for request: MCPRequest,
        of principal: Principal,
        at endpoint: Endpoint,
        shared: UpstreamSession,
        by routes: [AuthorizedRoute],
        within limit: Duration
    ) async throws -> Checkout {
        let end = watch.elapsed + limit
        guard let client = request.clientRequester, Self.methodsWithClientRequests.contains(request.method),
            let parameters = try await shared.parameters(for: client, at: endpoint, by: routes, within: limit)
        else { return Checkout(session: shared) }
        let key = ClientSessionPool.Key(endpoint: endpoint.id, holder: principal.holder, client: client.key)
        let (isFirst, checkedOut) = try clientSessions.withLock { sessions throws(AppError) in
            (
                sessions.isEmpty,
                try sessions.checkOut(key, isShared: client.isAskedOnStreams, at: watch.elapsed) {
                    makeSession(to: endpoint.id, clientParameters: parameters)
                }
            )
        }
        let (numbered, session, evicted) = checkedOut
        let checkout = Checkout(key: numbered, session: session)
        if isFirst { context.tasks.schedule { [self] in await expireSessions() } }
        for (id, session) in evicted { close(session, of: id) }
        do {
            let left = end - watch.elapsed
            if try await session.connect(endpoint, by: routes, within: left).server.sessionID != nil { return checkout }
        } catch AppError.notMCP {
        } catch {
            checkIn(checkout)
            throw error
        }
        clientSessions.withLock { $0.remove(numbered, session) }
        shared.connector.recordNoSessions()
        return Checkout(session: shared)
    }

    /// Returns a session after use.
    func checkIn(_ checkout: Checkout) {
        guard let key = checkout.key else { return }
        clientSessions.withLock { $0.checkIn(key, checkout.session, at: watch.elapsed) }
    }

    /// Closes idle sessions until there are no client sessions.
    private func expireSessions() async {
        repeat {
            guard (try? await context.clock.sleep(for: ClientSessionPool.lifetime / 10)) != nil else { return }
            for (id, session) in clientSessions.withLock({ $0.expire(at: watch.elapsed) }) { close(session, of: id) }
        } while !clientSessions.withLock { $0.isEmpty }
    }

    /// Ends the session at the app if the app is reachable. Uses the broker's permissions, not the client's.
    func close(_ session: UpstreamSession, of id: EndpointID) {
        context.tasks.schedule { [self] in
            let access = try? await authorize(.broker, to: endpoint(id)).1
            await session.close(by: access?.routes ?? [])
        }
    }
}
