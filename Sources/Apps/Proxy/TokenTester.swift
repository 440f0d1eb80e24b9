package import AccessControl
package import Model
import Synchronization
import SystemIO

/// Tests whether apps accept tokens and principals.
extension AppProxy {
    private static let admissionTimeout = Duration.seconds(3)

    /// Tests whether a running app accepts a token, before the token is stored.
    ///
    /// - Returns: Nil if the app cannot be asked now, or accepts requests without a token.
    package func accepts(_ secret: EndpointSecret, at endpoint: Endpoint, for principal: Principal) async -> Bool? {
        // The handshake with a profile's server sends no token, and a test could spend a token for one use.
        if pool.requiresSecret(endpoint.kind) == true { return nil }
        if await requiresNoSecret(endpoint, for: principal) { return nil }
        await pool.observeLaunch(of: endpoint)
        let routes = Mutex<[AuthorizedRoute]>([])
        let isAccepted = await isAdmitted(principal, at: endpoint) { approved in
            let tested = approved.map { AuthorizedRoute($0.route, secret: secret, observation: $0.observation) }
            routes.withLock { $0 = tested }
            return tested
        }
        if isAccepted == true { pool.recordAcceptance(of: secret, by: endpoint, over: routes.withLock { $0 }) }
        return isAccepted
    }

    /// Tests whether an app accepts requests without a token. No token is sent.
    ///
    /// - Returns: False if the app requires or advertises a token, or cannot be asked now.
    package func requiresNoSecret(_ endpoint: Endpoint, for principal: Principal) async -> Bool {
        guard pool.requiresSecret(endpoint.kind) != true, !pool.requiresToken(endpoint), !endpoint.wantsToken else {
            return false
        }
        return await isAdmitted(principal, at: endpoint) { $0.map { AuthorizedRoute($0.route) } } == true
    }

    /// Tests whether an app accepts this principal's requests. Records an app that requires a token.
    ///
    /// - Returns: Nil if the app cannot be asked now.
    package func isOpen(_ endpoint: Endpoint, for principal: Principal) async -> Bool? {
        if pool.requiresToken(endpoint) { return false }
        if pool.requiresSecret(endpoint.kind) == true {
            return (try? await pool.authorize(principal, to: endpoint))?.1.hasSecret
        }
        let isOpen = await isAdmitted(principal, at: endpoint) { $0 }
        if isOpen == false { pool.recordTokenNeed(of: endpoint.id, of: endpoint) }
        return isOpen
    }

    /// Returns whether the app accepts the principal on the given routes; nil if the app cannot be asked.
    private func isAdmitted(
        _ principal: Principal,
        at endpoint: Endpoint,
        by routes: ([AuthorizedRoute]) -> [AuthorizedRoute]
    ) async -> Bool? {
        guard let (_, access) = try? await pool.authorize(principal, to: endpoint) else { return nil }
        let routes = routes(access.routes)
        // A new session: the shared one knows this launch already and would send nothing.
        let session = pool.makeSession(to: endpoint.id)
        do {
            let connected = try await withTimeout(Self.admissionTimeout, clock: context.clock) {
                try await session.connect(endpoint, by: routes)
            }
            return connected.map { _ in true }
        } catch AppError.tokenRequired {
            return false
        } catch {
            return nil
        }
    }
}

extension Endpoint {
    /// AppReveal 0.10.0 and later advertise this.
    package var wantsToken: Bool { txt["auth"] == "session-token" }
}
