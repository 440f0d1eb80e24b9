package import Model
package import SystemIO

/// Identifies the server on a port.
package struct ServiceDetector: Sendable {
    private let sender: ProbeSender
    private let ports: ProbePorts

    /// - Parameters:
    ///   - dialer: Opens the connections.
    ///   - ports: Selects the profiles to try.
    ///   - timeout: The maximum time for each request, including the dial.
    ///   - clock: The clock for the timeout.
    ///   - isInUse: Returns true if another stream to the route is open. Nothing is sent to such a route.
    package init(
        dialer: any Dialer,
        ports: ProbePorts = ProbePorts([]),
        timeout: Duration = .seconds(2),
        clock: any Clock<Duration> = PollerClock(),
        isInUse: @escaping @Sendable (Route) -> Bool = { _ in false }
    ) {
        sender = ProbeSender(dialer: dialer, timeout: timeout, clock: clock, isInUse: isInUse)
        self.ports = ports
    }

    /// Detects the server behind a route. Returns the kind `tcp` if a server listens that matches no probe.
    ///
    /// - Throws: `DialError` if the port accepted no connection in time; `PortInUse`; `CancellationError`.
    package func detect(_ route: Route) async throws -> ServerIdentity {
        let health = try await sender.send(ServiceProbe.health, to: route)
        switch health {
        case .response(let response):
            if let service = ServiceProbe.appReveal(response) {
                return await addingLaunchInfo(to: service, from: route)
            }
        case .other, .none, .silence:
            // A server with a line protocol ignores HTTP, closes the connection, or replies that the input is not JSON.
            let line = try await sender.send(line: ServiceProbe.initializeMessage, to: route)
            if let service = line.response.flatMap(ServiceProbe.server) { return service }
            if case .other = health { return ServerIdentity(kind: .tcp) }
        }
        var conversation = Conversation(sender: sender, route: route, lastIsSilent: health.isSilence)
        do {
            for profile in ports.profiles(on: route.port) {
                if let service = try await conversation.recognize(profile) { return service }
            }
            let version = try await conversation.send(DevToolsProbe.version)
            if let service = version.response.flatMap(DevToolsProbe.server) { return service }
            for request in ServiceProbe.initialize {
                let reply = try await conversation.send(request)
                if var service = reply.response.flatMap(ServiceProbe.server) {
                    service.isPartial = !service.isComplete && conversation.hasSilence
                    return service
                }
            }
        } catch is Unresponsive {}
        var service = ServerIdentity(kind: .tcp)
        service.isPartial = conversation.hasSilence
        return service
    }

    /// Requests `GET /health`, which needs no secret.
    ///
    /// Returns nil if the server is unreachable, silent or responds with an error. `kind` is `tcp` if the response is
    /// not AppReveal's.
    package func health(of route: Route) async -> ServerIdentity? {
        guard let response = try? await sender.send(ServiceProbe.health, to: route).response else { return nil }
        return ServiceProbe.appReveal(response) ?? ServerIdentity(kind: .tcp)
    }

    /// Returns the app behind AppReveal as reported by the tool `launch_context`; nil if the tool reports none.
    ///
    /// `isExpected` is called on the established connection. If it returns false, nothing is sent.
    package func launch(
        of route: Route,
        token: String? = nil,
        isExpected: @escaping @Sendable () async -> Bool = { true }
    ) async -> ServerIdentity? {
        let request = ServiceProbe.launchContext(token: token)
        let reply = try? await sender.send(request, to: route, isExpected: isExpected)
        return reply?.response.flatMap(ServiceProbe.app)
    }

    /// The answer of a server that is asked for its launch, without a secret.
    enum HealthAnswer: Hashable, Sendable {
        /// The server serves this connection beside others. It may report a launch ID.
        case served(SanitizedText?)
        /// The server does not answer, for example because it serves one connection at a time.
        case silent

        var launchID: SanitizedText? { if case .served(let id) = self { id } else { nil } }
    }

    /// Asks a server for its launch with `GET /health`, which needs no secret and changes nothing.
    func launch(behind route: Route) async -> HealthAnswer {
        guard let reply = try? await sender.send(ServiceProbe.health, to: route), !reply.isSilence else {
            return .silent
        }
        return .served(reply.response.flatMap(ServiceProbe.appReveal)?.launchID)
    }

    private func addingLaunchInfo(to appReveal: ServerIdentity, from route: Route) async -> ServerIdentity {
        var service = appReveal
        guard service.app == nil else { return service }
        let response = (try? await sender.send(ServiceProbe.launchContext(), to: route))?.response
        service.isPartial = response == nil
        if let app = response.flatMap(ServiceProbe.app) {
            service.app = app.app
            service.version = app.version
        }
        return service
    }
}

/// The requests to one port, which end when two in succession have no response. The port is probed again later.
private struct Conversation {
    let sender: ProbeSender
    let route: Route
    /// Indicates whether the last request had no response.
    private var lastIsSilent: Bool
    /// Indicates whether any request had no response.
    private(set) var hasSilence: Bool

    init(sender: ProbeSender, route: Route, lastIsSilent: Bool) {
        (self.sender, self.route) = (sender, route)
        (self.lastIsSilent, hasSilence) = (lastIsSilent, lastIsSilent)
    }

    /// - Throws: `Unresponsive`, and the errors of `ProbeSender`.
    mutating func send(_ request: AppHTTPRequest) async throws -> ProbeSender.Reply {
        let reply = try await sender.send(request, to: route)
        if reply.isSilence { hasSilence = true }
        if lastIsSilent, reply.isSilence { throw Unresponsive() }
        lastIsSilent = reply.isSilence
        return reply
    }

    /// Returns the server's identity if its responses match the profile.
    mutating func recognize(_ profile: Profile) async throws -> ServerIdentity? {
        var recognizer = ProfileRecognizer(profile)
        while let request = recognizer.nextRequest { recognizer.receive(try await send(request.httpRequest())) }
        return if case .match(let server) = recognizer.outcome { server } else { nil }
    }
}

/// Two requests in succession had no response.
private struct Unresponsive: Error {}
