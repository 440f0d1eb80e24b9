package import Model
import NIOHTTP1
import Synchronization
package import SystemIO

/// Asks a port what it is.
package struct ServiceDetector: Sendable {
    /// What came of one question.
    private enum Reply {
        case answer(ProbeHTTPRequest.Answer)
        /// Something else than HTTP.
        case other
        /// The connection ended, or more came than any server says that we know.
        case none
        case silence

        var answer: ProbeHTTPRequest.Answer? {
            if case .answer(let answer) = self { answer } else { nil }
        }
    }

    private let dialer: any Dialer
    private let patience: Duration
    private let clock: any Clock<Duration>

    /// - Parameters:
    ///   - dialer: How routes are reached.
    ///   - patience: How long each question may take, dialling included.
    ///   - clock: The time it is measured by.
    package init(
        dialer: any Dialer,
        patience: Duration = .seconds(2),
        clock: any Clock<Duration> = ContinuousClock()
    ) {
        self.dialer = dialer
        self.patience = patience
        self.clock = clock
    }

    /// What answers there; `tcp` when something listens that none of our questions fits.
    ///
    /// - Throws: `DialError` when the port accepted no connection in time, `CancellationError`.
    package func identify(_ route: Route) async throws -> ServerIdentity {
        let health = try await ask(ServiceProbe.health, route)
        switch health {
        case .answer(let answer):
            if let identity = ServiceProbe.appReveal(answer) { return await describe(identity, route) }
        case .other, .none, .silence:
            // A server that takes lines ignores HTTP, closes the connection, or answers that it is no JSON.
            if let identity = try await askInLines(route) { return identity }
            if case .other = health { return ServerIdentity(kind: .tcp) }
        }
        let actions = try await ask(ServiceProbe.actions, route)
        if let answer = actions.answer, ServiceProbe.isAppDebug(answer, beside: health.answer) {
            return ServerIdentity(kind: .appDebug)
        }
        // Three questions without an answer are enough: it is asked again later.
        if case .silence = actions, case .silence = health { return ServerIdentity(kind: .tcp) }
        for hello in ServiceProbe.initialize {
            if let answer = try await ask(hello, route).answer, let identity = ServiceProbe.server(answer) {
                return identity
            }
        }
        return ServerIdentity(kind: .tcp)
    }

    /// What a server tells of itself at `GET /health`, which needs no secret; nil when it cannot be reached, is silent or
    /// answers otherwise. `kind` is `tcp` when its answer is not AppReveal's.
    package func health(of route: Route) async -> ServerIdentity? {
        guard let answer = try? await ask(ServiceProbe.health, route).answer else { return nil }
        return ServiceProbe.appReveal(answer) ?? ServerIdentity(kind: .tcp)
    }

    /// The app behind AppReveal, as its tool `launch_context` tells it; nil when it does not.
    package func launch(of route: Route, token: String? = nil) async -> ServerIdentity? {
        guard let answer = try? await ask(ServiceProbe.launchContext(token: token), route).answer,
            let app = ServiceProbe.app(answer)
        else { return nil }
        return ServerIdentity(kind: .appreveal, app: app.bundleID, version: app.version)
    }

    private func describe(_ appReveal: ServerIdentity, _ route: Route) async -> ServerIdentity {
        var identity = appReveal
        guard identity.app == nil else { return identity }
        if let app = await launch(of: route) {
            identity.app = app.app
            identity.version = app.version
        }
        return identity
    }

    private func askInLines(_ route: Route) async throws -> ServerIdentity? {
        let reply = try await ask(route) { carrier in
            ProbeHTTPRequest.Answer(status: 200, body: try await ServiceProbe.initializeInLines.run(over: carrier))
        }
        return reply.answer.flatMap { ServiceProbe.server($0, inLines: true) }
    }

    private func ask(_ question: ProbeHTTPRequest, _ route: Route) async throws -> Reply {
        try await ask(route) { try await question.run(over: $0) }
    }

    private func ask(
        _ route: Route,
        _ question: @escaping @Sendable (consuming Connection) async throws -> ProbeHTTPRequest.Answer
    ) async throws -> Reply {
        let isAccepted = Atomic(false)
        do {
            let answer = try await withDeadline(patience, clock: clock) { [dialer] in
                let carrier = try await dialer.dial(route)
                isAccepted.store(true, ordering: .releasing)
                return try await question(carrier)
            }
            // A server that accepts and is silent listens. A dial that took too long proves no listener.
            guard answer != nil || isAccepted.load(ordering: .acquiring) else {
                throw DialError(.timedOut, "\(route) did not accept a connection within \(patience)")
            }
            return answer.map(Reply.answer) ?? .silence
        } catch let failure as DialError {
            throw failure
        } catch let cancelled as CancellationError {
            throw cancelled
        } catch ProbeError.speaksFirst {
            return .other
        } catch let error as HTTPParserError where error != .invalidEOFState {
            return .other
        } catch {
            return .none
        }
    }
}

/// Why a server's answer to a hello says nothing about what it is.
enum ProbeError: Error {
    /// It sent something before it was asked, which no HTTP server does.
    case speaksFirst
    case tooMuch
    case endedEarly
}
