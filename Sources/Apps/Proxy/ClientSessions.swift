import AccessControl
import Model
import Synchronization
import SystemIO

/// The sessions with apps that each belong to one client. Closes idle sessions.
final class ClientSessions: Sendable {
    /// Methods that use a client session: apps may send requests during them, and the log level belongs to a session.
    /// All others use the shared session.
    private static let methodsWithClientRequests: Set = [
        "tools/call", "prompts/get", "resources/read", "logging/setLevel",
    ]

    /// A session in use by a request of its client.
    struct Checkout: Sendable {
        fileprivate let key: ClientSessionPool.Key
        let session: UpstreamSession
    }

    private let context: ProxyContext
    private let upstreamPool: UpstreamSessionPool
    private let watch: ElapsedTimer
    private let pool = Mutex(ClientSessionPool())

    init(_ context: ProxyContext, over upstreamPool: UpstreamSessionPool) {
        self.context = context
        self.upstreamPool = upstreamPool
        watch = ElapsedTimer(context.clock)
    }

    /// Returns the client that an app may send requests to during a request; nil for a request of the shared session.
    static func client(of request: MCPRequest) -> ClientRequester? {
        methodsWithClientRequests.contains(request.method) ? request.clientRequester : nil
    }

    /// Returns the client's own session, on which the app may send requests to that client. Call `checkIn` after use.
    ///
    /// - Returns: Nil for an app without sessions.
    /// - Throws: `AppError`, `CancellationError`.
    func checkOut(
        for clientRequester: ClientRequester,
        of principal: Principal,
        at endpoint: Endpoint,
        shared session: UpstreamSession,
        by routes: [AuthorizedRoute],
        within limit: Duration
    ) async throws -> Checkout? {
        let end = watch.elapsed + limit
        let connected = try await session.connect(endpoint, by: routes, within: limit)
        // A server that supports both modes sends requests to a session-mode client, and returns them as results to a
        // stateless client.
        guard let path = session.sessionPath(of: connected, speaking: clientRequester.isAskedOnStreams) else {
            return nil
        }
        let client = ClientSessionPool.Key(endpoint: endpoint.id, holder: principal.holder, client: clientRequester.key)
        let parameters = ClientSessionParameters(
            path: path,
            protocolVersion: min(clientRequester.protocolVersion, connected.server.newestVersion),
            capabilities: clientRequester.capabilities
        )
        let (isFirst, checkedOut) = try pool.withLock { sessions throws(AppError) in
            (
                sessions.isEmpty,
                try sessions.checkOut(client, isShared: clientRequester.isAskedOnStreams, at: watch.elapsed) {
                    upstreamPool.makeSession(to: endpoint.id, clientParameters: parameters)
                }
            )
        }
        let (key, clientSession, evicted) = checkedOut
        let checkout = Checkout(key: key, session: clientSession)
        if isFirst { context.tasks.schedule { [self] in await expireSessions() } }
        for (id, session) in evicted { close(session, of: id) }
        do {
            let left = end - watch.elapsed
            if try await clientSession.connect(endpoint, by: routes, within: left).server.sessionID != nil {
                return checkout
            }
        } catch AppError.notMCP {
        } catch {
            checkIn(checkout)
            throw error
        }
        pool.withLock { $0.remove(key, clientSession) }
        session.recordNoSessions()
        return nil
    }

    /// Returns a session to the pool after use.
    func checkIn(_ checkout: Checkout) {
        pool.withLock { $0.checkIn(checkout.key, checkout.session, at: watch.elapsed) }
    }

    /// Closes idle sessions until the pool is empty.
    private func expireSessions() async {
        repeat {
            guard (try? await context.clock.sleep(for: ClientSessionPool.lifetime / 10)) != nil else { return }
            for (id, session) in pool.withLock({ $0.expire(at: watch.elapsed) }) {
                close(session, of: id)
            }
        } while !pool.withLock { $0.isEmpty }
    }

    /// Closes all sessions with a deleted endpoint.
    func removeAll(of id: EndpointID) {
        for session in pool.withLock({ $0.removeAll(of: id) }) { close(session, of: id) }
    }

    /// Discards all sessions with an endpoint. The app is not informed.
    func disconnect(_ id: EndpointID) async {
        for session in pool.withLock({ $0.removeAll(of: id) }) { await session.invalidate() }
    }

    /// Ends the session at the app if the app is reachable. Uses the broker's permissions, not the client's.
    private func close(_ session: UpstreamSession, of id: EndpointID) {
        context.tasks.schedule { [upstreamPool] in
            guard let endpoint = try? await upstreamPool.endpoint(id),
                let (_, access) = try? await upstreamPool.authorize(.broker, to: endpoint)
            else { return await session.close(by: []) }
            await session.close(by: access.routes)
        }
    }
}
