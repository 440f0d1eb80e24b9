import AccessControl
import Model
import SystemIO

/// Tests whether apps accept tokens and callers.
struct TokenTester: Sendable {
    private static let timeout = Duration.seconds(3)

    let pool: UpstreamPool
    let clock: any Clock<Duration>

    /// Tests whether a running app accepts a token, before the token is stored.
    ///
    /// - Returns: Nil if the app cannot be asked now.
    func accepts(_ secret: EndpointSecret, at endpoint: Endpoint, for caller: AgentCaller) async -> Bool? {
        await isAdmitted(caller, at: endpoint) { $0.map { AuthorizedRoute($0.route, secret: secret) } }
    }

    /// Tests whether an app accepts this caller's requests. Records an app that requires a token.
    ///
    /// - Returns: Nil if the app cannot be asked now.
    func isOpen(_ endpoint: Endpoint, for caller: AgentCaller) async -> Bool? {
        if pool.requiresToken(endpoint) { return false }
        let isOpen = await isAdmitted(caller, at: endpoint) { $0 }
        if isOpen == false { pool.recordTokenNeed(of: endpoint.id, of: endpoint) }
        return isOpen
    }

    /// Returns whether the app accepts the caller on the given routes; nil if the app cannot be asked.
    private func isAdmitted(
        _ caller: AgentCaller,
        at endpoint: Endpoint,
        by routes: ([AuthorizedRoute]) -> [AuthorizedRoute]
    ) async -> Bool? {
        guard let (_, access) = try? await pool.authorize(caller, to: endpoint) else { return nil }
        let routes = routes(access.routes)
        // A new session: the shared one knows this launch already and would send nothing.
        let session = pool.makeSession(to: endpoint.id)
        do {
            let connected = try await withTimeout(Self.timeout, clock: clock) {
                try await session.connect(endpoint, by: routes)
            }
            return connected.map { _ in true }
        } catch UpstreamError.tokenRequired {
            return false
        } catch {
            return nil
        }
    }
}
