import AccessControl
import Model
import Registry
import Synchronization
import SystemIO

/// The sessions with apps, a shared one for each app and those of clients, and the state of each app's current launch.
final class UpstreamSessionPool: Sendable {
    private struct Entry: Sendable {
        let session: UpstreamSession
        /// `Endpoint.approvedApp`.
        var approvedApp: SanitizedText?
        var launch: UpstreamConnector.Launch?
        /// The time of the last launch or return, by `watch`; nil if the app was present at start.
        var arrivedAt: Duration?
        /// The launch that last answered 401.
        var launchRequiringToken: UpstreamConnector.Launch?
        /// The time of the last connection that was made only for the description.
        var lastDescriptionAttempt: Duration?
        /// Indicates whether the tools have not been listed since the launch.
        var isListDue = false
    }

    /// The pause between two connections that are made only for a description, in seconds.
    private static let descriptionRetryPause = Duration.seconds(10)

    let context: ProxyContext
    private let dialer: any Dialer
    private let probe: IdentityProbe
    private let profiles: ProfileIndex
    private let artifacts: ArtifactStore
    let watch: ElapsedTimer
    /// The calls and change streams in progress.
    let endpointTasks = EndpointTasks()
    private let largeResponses = LargeResponseBudget()
    /// The repairs in the messages of the apps.
    let deviations = ServerDeviations()
    private let entries = Mutex<[EndpointID: Entry]>([:])
    let clientSessions = Mutex(ClientSessionPool())

    init(
        _ context: ProxyContext,
        dialer: any Dialer,
        probe: IdentityProbe,
        profiles: ProfileIndex,
        artifacts: ArtifactStore
    ) {
        self.context = context
        self.dialer = dialer
        self.probe = probe
        self.profiles = profiles
        self.artifacts = artifacts
        watch = ElapsedTimer(context.clock)
    }

    // MARK: Sessions

    /// Returns the endpoint of this host.
    ///
    /// - Throws: `AppError.unreachable` if there is none.
    func endpoint(_ id: EndpointID) async throws -> Endpoint {
        do { return try await context.registry.endpoint(id) } catch .onOtherHost(let id, let host) {
            let error = RegistryError.onOtherHost(id, host)
            throw AppError.unreachable(DialError(.noRoute, error.description))
        } catch {
            throw AppError.unreachable(
                DialError(.noRoute, "there is no endpoint \(id); `patchbay list` shows all endpoints")
            )
        }
    }

    /// Returns the session with an endpoint and the routes that the principal may use.
    ///
    /// - Throws: `AppError`.
    func authorize(_ principal: Principal, to endpoint: Endpoint) async throws -> (UpstreamSession, AuthorizedRoutes) {
        guard principal.may(.endpointCall, on: endpoint) else { throw AppError.forbidden(.endpointCall) }
        guard mayHaveTools(endpoint) else { throw AppError.notMCP }
        guard !endpoint.routes.isEmpty, endpoint.state != .blocked else {
            throw AppError.unreachable(UpstreamConnector.noRoute(to: endpoint))
        }
        let access = await context.authorizer.access(to: endpoint, for: principal)
        guard !access.isUnapproved else {
            let changed = endpoint.routes.first { $0.mismatch != nil }
            throw changed.flatMap { route in
                route.mismatch.map { AppError.mismatch(route.route, found: $0) }
            } ?? (endpoint.approval == .denied ? AppError.denied : .notApproved)
        }
        return (session(to: endpoint), access)
    }

    /// Begins to observe the launch of an app, so that a secret can be bound to it.
    func observeLaunch(of endpoint: Endpoint) async { await context.authorizer.observe(endpoint) }

    /// Records the launches that accepted a secret which is not stored yet.
    func recordAcceptance(of secret: EndpointSecret, by endpoint: Endpoint, over routes: [AuthorizedRoute]) {
        context.authorizer.recordAcceptance(of: secret, by: endpoint, over: routes)
    }

    /// Returns whether an endpoint may have tools.
    func mayHaveTools(_ endpoint: Endpoint) -> Bool { profiles.mayHaveTools(endpoint) }

    /// Returns whether a server of this kind requires a secret; nil if only the server knows.
    func requiresSecret(_ kind: EndpointKind) -> Bool? { profiles[kind]?.authentication.requiresSecret }

    /// Returns the shared session with an endpoint, created on first use.
    func session(to endpoint: Endpoint) -> UpstreamSession {
        entries.withLock { entries in
            if let entry = entries[endpoint.id] { return entry.session }
            let entry = Entry(session: makeSession(to: endpoint.id), approvedApp: endpoint.approvedApp)
            entries[endpoint.id] = entry
            return entry.session
        }
    }

    /// Makes a session with an app: a client session with `clientParameters`, otherwise a shared one.
    func makeSession(to id: EndpointID, clientParameters: ClientSessionParameters? = nil) -> UpstreamSession {
        let connections = ConnectionPool(
            to: id,
            dialer: dialer,
            clock: context.clock,
            watch: ElapsedTimer(context.clock),
            tasks: context.tasks,
            largeResponses: largeResponses,
            deviations: deviations
        )
        let connector = UpstreamConnector(
            over: connections,
            limits: context.timeouts.response,
            tasks: context.tasks,
            clientParameters: clientParameters,
            profiles: profileContext(of: id),
            probe: probe,
            onIdentify: { [context] report in
                switch report {
                case .server(let name, let version): await context.registry.setServer(name, version: version, of: id)
                case .mismatch(let route, let found): await context.registry.setMismatch(found, on: route, of: id)
                }
            },
            onConnect: { [weak self, context] server in
                // The public description of an app comes from the shared session only.
                guard clientParameters == nil else { return }
                await context.registry.setCapabilities(server.capabilityNames, of: id)
                await context.cache.update(id) { $0.record(server) }
                self?.setListDue(true, of: id)
                context.upstreamSessionEvents.send(.connection(id))
            }
        )
        return UpstreamSession(over: connector, timeouts: context.timeouts, tasks: context.tasks) { [context] change in
            context.report(change, of: id)
        }
    }

    private func profileContext(of id: EndpointID) -> ProfileContext {
        ProfileContext(
            index: profiles,
            access: ProfileAccess(
                admit: { [weak self] in
                    guard let self else { throw CancellationError() }
                    return try await brokerAdmission(to: id)
                },
                store: { [context] secret in
                    try await context.authorizer.storeExchangedSecret(secret, of: context.registry.endpoint(id))
                }
            ),
            artifacts: artifacts
        )
    }

    /// Looks up the routes and secrets that the broker itself may use.
    private func brokerAdmission(to id: EndpointID) async throws -> DeliveryAuthorization {
        let generation = context.authorizer.generation
        let (_, access) = try await authorize(.broker, to: endpoint(id))
        let limit = ResponseLimits.handshake.total
        return DeliveryAuthorization(
            access.routes,
            of: .broker,
            by: context.authorizer,
            since: generation,
            limit: limit
        )
    }

    /// Ends the sessions that profiles' servers hold for the broker.
    func endProfileSessions() async {
        let sessions = entries.withLock { $0.values.map(\.session) }
        await withDiscardingTaskGroup { group in
            for session in sessions { group.addTask { await session.connector.endProfileSession() } }
        }
    }

    /// The shared session with an endpoint; nil for an unknown endpoint.
    func session(of id: EndpointID) -> UpstreamSession? { entries.withLock { $0[id]?.session } }

    /// Returns whether a principal may be told of a change. The URI of a resource is known only to principals that may
    /// call the app.
    func mayReceive(_ change: ServerChange, of id: EndpointID, _ principal: Principal) -> Bool {
        guard principal.canSee(id, approvedApp: approvedApp(of: id)) else { return false }
        if case .resource = change { return principal.may(.endpointCall) && context.authorizer.isLive(principal) }
        return true
    }

    /// The server of the last handshake over the shared session.
    func server(of id: EndpointID) -> ServerInfo? { entries.withLock { $0[id]?.session }?.server }

    // MARK: Launches

    /// Records an endpoint's current launch. A new launch after the start sets the time of arrival.
    func observe(_ endpoint: Endpoint, isStart: Bool) {
        guard mayHaveTools(endpoint) else { return }
        let launch = endpoint.state == .offline ? nil : endpoint.launch
        let isRelaunch = entries.withLock { entries in
            var entry =
                entries[endpoint.id] ?? Entry(session: makeSession(to: endpoint.id), approvedApp: endpoint.approvedApp)
            let isNew = launch != nil && entry.launch != launch
            entry.approvedApp = endpoint.approvedApp
            entry.launch = launch
            if isNew, !isStart { entry.arrivedAt = watch.elapsed }
            if isNew { (entry.isListDue, entry.launchRequiringToken) = (true, nil) }
            entries[endpoint.id] = entry
            return isNew && !isStart
        }
        if isRelaunch { deviations.removeAll(of: endpoint.id) }
    }

    /// Records that the launch of an app has ended. The next server at its address is another launch.
    func endLaunch(of id: EndpointID) async {
        let session = entries.withLock { entries -> UpstreamSession? in
            guard var entry = entries[id] else { return nil }
            (entry.isListDue, entry.launchRequiringToken, entry.arrivedAt) = (true, nil, watch.elapsed)
            entries[id] = entry
            return entry.session
        }
        deviations.removeAll(of: id)
        await session?.connector.invalidate(endingLaunch: true)
    }

    /// Removes a deleted endpoint, and closes its sessions.
    func remove(_ id: EndpointID) async {
        let session = entries.withLock { $0.removeValue(forKey: id)?.session }
        deviations.removeAll(of: id)
        await session?.connector.invalidate()
        for session in clientSessions.withLock({ $0.removeAll(of: id) }) { close(session, of: id) }
    }

    /// Discards all sessions with an endpoint. The app is not informed.
    func disconnect(_ id: EndpointID) async {
        let sessions = entries.withLock { $0[id].map { [$0.session] } ?? [] }
        for session in sessions + clientSessions.withLock({ $0.removeAll(of: id) }) {
            await session.connector.invalidate()
        }
    }

    func contains(_ id: EndpointID) -> Bool { entries.withLock { $0[id] != nil } }

    /// The app whose approval covers an endpoint.
    func approvedApp(of id: EndpointID) -> SanitizedText? { entries.withLock { $0[id]?.approvedApp } }

    /// Returns the time since the app's launch or return; nil if neither was observed.
    func sinceArrival(of id: EndpointID) -> Duration? {
        entries.withLock { $0[id]?.arrivedAt }.map { watch.elapsed - $0 }
    }

    /// Indicates whether the tools have not been listed since the launch.
    func isListDue(of id: EndpointID) -> Bool { entries.withLock { $0[id]?.isListDue == true } }

    func setListDue(_ isDue: Bool, of id: EndpointID) { entries.withLock { $0[id]?.isListDue = isDue } }

    /// Returns whether the current launch has rejected a request for lack of a valid token.
    func requiresToken(_ endpoint: Endpoint) -> Bool {
        guard let launch = entries.withLock({ $0[endpoint.id]?.launchRequiringToken }) else { return false }
        return launch == endpoint.launch
    }

    /// Records that the launch requires a token; nil clears the record.
    func recordTokenNeed(of id: EndpointID, of endpoint: Endpoint?) {
        entries.withLock { $0[id]?.launchRequiringToken = endpoint?.launch }
    }

    /// Returns whether an app may be asked for its description now, and records the attempt.
    func beginDescriptionAttempt(of id: EndpointID) -> Bool {
        let now = watch.elapsed
        return entries.withLock { entries in
            if let last = entries[id]?.lastDescriptionAttempt, now - last < Self.descriptionRetryPause { return false }
            entries[id]?.lastDescriptionAttempt = now
            return true
        }
    }
}
