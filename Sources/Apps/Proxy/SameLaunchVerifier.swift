package import AccessControl
import Model
package import Registry
import ServiceLifecycle
import Synchronization
import SystemIO

/// Proves that AppReveal on a cable and at an approved network address is one launch of an app.
///
/// AppReveal makes a random token at each launch. If the same token is stored for both endpoints, the verifier sends it to
/// both servers, each over the route that it was stored for. The proof is that both accept it and describe the same app.
/// A token is sent nowhere else.
package final class SameLaunchVerifier: Service {
    /// An endpoint with a stored token, and the approved route for it.
    private struct Holder {
        let endpoint: Endpoint
        let route: EndpointRoute
        let secret: EndpointSecret
        /// The route with the secret and its launch.
        let authorized: AuthorizedRoute

        /// Returns whether the servers may be one. One launch has one port and one app. An endpoint on a cable may not
        /// know its app yet.
        func mayBe(_ cabled: Holder) -> Bool {
            route.port == cabled.route.port && secret.isEqual(to: cabled.secret)
                && (cabled.endpoint.app.isEmpty || cabled.endpoint.app == endpoint.app)
        }
    }

    /// The maximum number of attempts for two endpoints. The pauses between them double from 1 s, so an app has two
    /// minutes to start.
    private static let attemptLimit = 8

    private let registry: EndpointRegistry
    private let accessStore: AccessStore
    private let probe: IdentityProbe
    private let clock: any Clock<Duration>
    /// The proofs that are found, or are being looked for.
    private let known = Mutex<Set<SameLaunch>>([])

    package init(
        registry: EndpointRegistry,
        accessStore: AccessStore,
        probe: IdentityProbe,
        clock: any Clock<Duration> = ContinuousClock()
    ) {
        self.registry = registry
        self.accessStore = accessStore
        self.probe = probe
        self.clock = clock
    }

    /// Looks for proofs until graceful shutdown or cancellation.
    package func run() async throws {
        await cancelWhenGracefulShutdown { [self] in
            let (signals, continuation) = AsyncStream.makeStream(of: Void.self, bufferingPolicy: .bufferingNewest(1))
            await withDiscardingTaskGroup { group in
                group.addTask { [self] in await registry.follow { _ in continuation.yield() } }
                group.addTask { [self] in
                    for await _ in accessStore.approvals.changes() {
                        // The token may be another one.
                        known.withLock { $0 = [] }
                        continuation.yield()
                    }
                }
                group.addTask { [self] in
                    guard let launches = accessStore.launches else { return }
                    for await _ in launches.changes() {
                        // A token may be sent only while its launch is observed.
                        known.withLock { $0 = [] }
                        continuation.yield()
                    }
                }
                for await _ in signals {
                    for proof in await newCandidates() { group.addTask { [self] in await verifyUntilDone(proof) } }
                }
            }
        }
    }

    /// Returns the pairs of endpoints that became candidates, and ends the proofs of former candidates with other tokens.
    func newCandidates() async -> Set<SameLaunch> {
        let endpoints = await registry.endpoints
        let holders = endpoints.compactMap(tokenHolder)
        for endpoint in endpoints where endpoint.sameLaunchAs != nil {
            let cabled = endpoints.first { $0.id == endpoint.sameLaunchAs }.flatMap(tokenHolder)
            if tokenHolder(endpoint).flatMap({ one in cabled.map(one.mayBe) }) != true {
                await registry.endSameLaunch(of: endpoint.id)
            }
        }
        let candidates = holders.filter { $0.endpoint.state == .online && $0.route.route.isNetwork }
            .compactMap { wireless -> SameLaunch? in
                let cabled = holders.filter { !$0.route.route.isNetwork && wireless.mayBe($0) }
                guard let only = cabled.first, cabled.count == 1 else { return nil }
                return SameLaunch(
                    wireless: wireless.endpoint,
                    over: wireless.route,
                    cabled: only.endpoint,
                    over: only.route
                )
            }
        return known.withLock { known in
            defer { known = Set(candidates) }
            return Set(candidates).subtracting(known)
        }
    }

    /// Returns an AppReveal endpoint with its token; nil if no token is stored, or if the app rejected it.
    private func tokenHolder(_ endpoint: Endpoint) -> Holder? {
        let isCabled = endpoint.sources.contains(where: \.isPhone)
        guard endpoint.kind == .appreveal, isCabled || endpoint.sources == [.bonjour],
            accessStore.secrets.isUsable(for: endpoint),
            let authorized = accessStore.secrets.access(to: endpoint).routes.first(where: {
                $0.secret != nil && $0.route.isNetwork != isCabled
            }),
            let secret = authorized.secret,
            let route = endpoint.routes.first(where: {
                $0.route == authorized.route && $0.isApproved && $0.isSecretHeld
            })
        else { return nil }
        return Holder(endpoint: endpoint, route: route, secret: secret, authorized: authorized)
    }

    private func verifyUntilDone(_ proof: SameLaunch) async {
        var backoff = Backoff(from: .seconds(1), to: .seconds(60))
        for _ in 1...Self.attemptLimit {
            guard known.withLock({ $0.contains(proof) }) else { return }
            if await verify(proof) { return }
            guard (try? await backoff.wait(clock: clock)) != nil else { return }
        }
    }

    /// Asks both servers with their tokens, and reports the result to the registry.
    ///
    /// - Returns: True if both are one launch.
    func verify(_ proof: SameLaunch) async -> Bool {
        guard let (wireless, sent) = await identity(of: proof.wireless),
            let (cabled, alsoSent) = await identity(of: proof.cabled), wireless == cabled,
            sent.isEqual(to: alsoSent)
        else {
            // A check that the broker's shutdown interrupts says nothing about the servers.
            if !Task.isCancelled { await registry.endSameLaunch(of: proof.wireless.id) }
            return false
        }
        if let app = cabled.app { await registry.setServer(app, version: cabled.version, of: proof.cabled.id) }
        await registry.setSameLaunch(proof)
        return true
    }

    /// Asks a server which app it is, first without its token and then with it.
    ///
    /// - Returns: The identity and the accepted token. Nil if the server accepts requests without a token, or is not the
    ///   expected one.
    private func identity(of side: SameLaunch.Side) async -> (ServerIdentity, EndpointSecret)? {
        guard await current(side) != nil, let health = await probe.health(side.route), health.kind == .appreveal,
            health.wantsToken
        else { return nil }
        // The approval or the token may have ended meanwhile.
        guard let holder = await current(side) else { return nil }
        let expected = holder.route.appIsBundleID ? holder.route.app : holder.endpoint.server
        guard health.app == nil || expected == nil || health.app == expected,
            health.launchID == nil || holder.route.launchID == nil || health.launchID == holder.route.launchID,
            let identity = await probe.launch(holder.authorized), let app = identity.app,
            expected == nil || app == expected
        else { return nil }
        return (identity, holder.secret)
    }

    /// Returns the endpoint of a proof with its token, if route and launch are still the same.
    private func current(_ side: SameLaunch.Side) async -> Holder? {
        guard let endpoint = try? await registry.endpoint(side.id), endpoint.id == side.id,
            let holder = tokenHolder(endpoint), holder.route.route == side.route, holder.route.launch == side.launch
        else { return nil }
        return holder
    }
}
