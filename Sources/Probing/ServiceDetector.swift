package import Model
import NIOHTTP1
import Synchronization
package import SystemIO

/// Identifies the server on a port.
package struct ServiceDetector: Sendable {
    /// The result of one probe request.
    private enum Reply {
        case response(ProbeHTTPRequest.Response)
        /// The response is not HTTP.
        case other
        /// The connection ended early, or the response was larger than that of any known server.
        case none
        case silence

        var response: ProbeHTTPRequest.Response? {
            if case .response(let response) = self { response } else { nil }
        }
    }

    private let dialer: any Dialer
    private let timeout: Duration
    private let clock: any Clock<Duration>

    /// - Parameters:
    ///   - dialer: Opens the connections.
    ///   - timeout: The maximum time for each request, including the dial.
    ///   - clock: The clock for the timeout.
    package init(
        dialer: any Dialer,
        timeout: Duration = .seconds(2),
        clock: any Clock<Duration> = ContinuousClock()
    ) {
        self.dialer = dialer
        self.timeout = timeout
        self.clock = clock
    }

    /// Detects the server behind a route. Returns the kind `tcp` if a server listens that matches no probe.
    ///
    /// - Throws: `DialError` if the port accepted no connection in time; `CancellationError`.
    package func detect(_ route: Route) async throws -> ServerIdentity {
        let health = try await send(ServiceProbe.health, to: route)
        switch health {
        case .response(let response):
            if let service = ServiceProbe.appReveal(response) {
                return await addingLaunchInfo(to: service, from: route)
            }
        case .other, .none, .silence:
            // A server with a line protocol ignores HTTP, closes the connection, or replies that the input is not JSON.
            if let service = try await probeLineProtocol(route) { return service }
            if case .other = health { return ServerIdentity(kind: .tcp) }
        }
        let actions = try await send(ServiceProbe.actions, to: route)
        if let response = actions.response, ServiceProbe.isAppDebug(response, beside: health.response) {
            return ServerIdentity(kind: .appDebug)
        }
        // After three requests without a response, stop. The port is probed again later.
        if case .silence = actions, case .silence = health { return ServerIdentity(kind: .tcp) }
        for probe in ServiceProbe.initialize {
            if let response = try await send(probe, to: route).response, let service = ServiceProbe.server(response) {
                return service
            }
        }
        return ServerIdentity(kind: .tcp)
    }

    /// Requests `GET /health`, which needs no secret.
    ///
    /// Returns nil if the server is unreachable, silent or responds with an error. `kind` is `tcp` if the response is
    /// not AppReveal's.
    package func health(of route: Route) async -> ServerIdentity? {
        guard let response = try? await send(ServiceProbe.health, to: route).response else { return nil }
        return ServiceProbe.appReveal(response) ?? ServerIdentity(kind: .tcp)
    }

    /// Returns the app behind AppReveal as reported by the tool `launch_context`; nil if the tool reports none.
    package func launch(of route: Route, token: String? = nil) async -> ServerIdentity? {
        guard let response = try? await send(ServiceProbe.launchContext(token: token), to: route).response,
            let app = ServiceProbe.app(response)
        else { return nil }
        return ServerIdentity(kind: .appreveal, app: app.bundleID, version: app.version)
    }

    private func addingLaunchInfo(to appReveal: ServerIdentity, from route: Route) async -> ServerIdentity {
        var service = appReveal
        guard service.app == nil else { return service }
        if let app = await launch(of: route) {
            service.app = app.app
            service.version = app.version
        }
        return service
    }

    private func probeLineProtocol(_ route: Route) async throws -> ServerIdentity? {
        let reply = try await exchange(with: route) { connection in
            ProbeHTTPRequest.Response(status: 200, body: try await ServiceProbe.initializeLine.run(over: connection))
        }
        return reply.response.flatMap { ServiceProbe.server($0, inLines: true) }
    }

    private func send(_ request: ProbeHTTPRequest, to route: Route) async throws -> Reply {
        try await exchange(with: route) { try await request.run(over: $0) }
    }

    private func exchange(
        with route: Route,
        _ body: @escaping @Sendable (consuming Connection) async throws -> ProbeHTTPRequest.Response
    ) async throws -> Reply {
        let isAccepted = Atomic(false)
        do {
            let response = try await withTimeout(timeout, clock: clock) { [dialer] in
                let connection = try await dialer.dial(route)
                isAccepted.store(true, ordering: .releasing)
                return try await body(connection)
            }
            // An accepted connection without a response proves a listener. A dial that timed out does not.
            guard response != nil || isAccepted.load(ordering: .acquiring) else {
                throw DialError(.timedOut, "\(route) did not accept a connection within \(timeout)")
            }
            return response.map(Reply.response) ?? .silence
        } catch let failure as DialError {
            throw failure
        } catch let cancelled as CancellationError {
            throw cancelled
        } catch ProbeError.unsolicitedData {
            return .other
        } catch let error as HTTPParserError where error != .invalidEOFState {
            return .other
        } catch {
            return .none
        }
    }
}

/// The reason why a response does not identify the server.
enum ProbeError: Error {
    /// The server sent data before the request, which no HTTP server does.
    case unsolicitedData
    case responseTooLarge
    case unexpectedEOF
}
