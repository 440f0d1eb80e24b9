package import Model
package import Sockets

/// Asks a port what it is.
package struct Identifier: Sendable {
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
    /// - Throws: `DialFailure` when nothing can be reached, `CancellationError`.
    package func identify(_ route: Route) async throws -> Identity {
        if let answer = try await ask(Hello.health, route), let identity = Hello.appReveal(answer) {
            return await describe(identity, route)
        }
        if let answer = try await ask(Hello.actions, route), Hello.isAppDebug(answer) {
            return Identity(kind: .appDebug)
        }
        if let answer = try await ask(Hello.initialize, route), let identity = Hello.server(answer) { return identity }
        return Identity(kind: .tcp)
    }

    private func describe(_ appReveal: Identity, _ route: Route) async -> Identity {
        var identity = appReveal
        if let answer = try? await ask(Hello.launchContext, route), let app = Hello.app(answer) {
            identity.app = app.bundleID
            identity.version = app.version
        }
        return identity
    }

    /// The answer to one question, or nil when the server does not understand it.
    private func ask(_ question: HTTPExchange, _ route: Route) async throws -> HTTPExchange.Answer? {
        do {
            let answer = try await withDeadline(patience, clock: clock) { [dialer] in
                try await question.run(over: dialer.dial(route))
            }
            // A server that takes the question and is silent listens all the same; it is none of those we know.
            return answer
        } catch let failure as DialFailure {
            throw failure
        } catch let cancelled as CancellationError {
            throw cancelled
        } catch {
            return nil
        }
    }
}
