import Model

/// Decides after a failed attempt whether to retry, to wait for the app, or to give up.
///
/// A request that may have reached the app is not sent again, unless the tool is declared safe to repeat. A request
/// that has not reached the app is retried until the time limit.
struct RetryPolicy: Sendable {
    /// The next step after a failed attempt.
    enum Decision: Hashable, Sendable {
        case tryAgain
        /// Waits for a state change of the app, at most this long.
        case wait(atMost: Duration)
        case giveUp
    }

    /// The interval between two attempts while the app has a route and does not answer. No event reports that a port is
    /// open again; the app is polled only during a call.
    static let pollInterval = Duration.milliseconds(250)

    /// The time after a launch within which a call waits for its token: 5 s.
    static let tokenPeriod = Duration.seconds(5)

    private let limit: Duration
    private let mayRepeat: Bool
    private let isTokenLogged: Bool
    private var hasRepeated = false

    /// Creates a policy that retries until `limit`. `mayRepeat` permits a second delivery. `isTokenLogged` is true if the
    /// broker reads the tokens that the app logs.
    init(for limit: Duration, mayRepeat: Bool, isTokenLogged: Bool = false) {
        self.limit = limit
        self.mayRepeat = mayRepeat
        self.isTokenLogged = isTokenLogged
    }

    /// Returns the decision after a failed attempt, `elapsed` after the request was received.
    ///
    /// `sinceArrival` is the time since the app's launch or return; nil if neither was observed.
    mutating func decision(after failure: AppError, at elapsed: Duration, sinceArrival: Duration?) -> Decision {
        switch failure {
        case .unreachable(let failure): return wait(Self.shouldPoll(failure) ? Self.pollInterval : limit, at: elapsed)
        case .tokenRequired(let problem) where problem == .outdated || problem == .missing && isTokenLogged:
            // The source of the token of the last launch usually gives the next one shortly after the launch.
            guard let sinceArrival, sinceArrival < Self.tokenPeriod else { return .giveUp }
            return wait(Self.tokenPeriod - sinceArrival, at: elapsed)
        case .responseLost:
            guard mayRepeat, !hasRepeated else { return .giveUp }
            hasRepeated = true
            return .tryAgain
        // The next attempt looks the permissions up again.
        case .permissionChanged: return .tryAgain
        // Waiting brings no token to an app that never had one, or that rejected it.
        case .tokenRequired, .notApproved, .denied, .mismatch, .forbidden, .toolNotAllowed,
            .invalidArguments, .notMCP, .busy, .noHandshake,
            .timedOut, .invalidResponse, .leased, .leaseRefused, .refused, .accessEnded:
            return .giveUp
        }
    }

    private func wait(_ pause: Duration, at elapsed: Duration) -> Decision {
        elapsed < limit ? .wait(atMost: min(pause, limit - elapsed)) : .giveUp
    }

    /// Returns whether the app has an address and may start to listen there without an event.
    static func shouldPoll(_ failure: DialError) -> Bool {
        switch failure.reason {
        case .noRoute, .deviceAbsent, .usbmuxdAbsent, .forbidden: false
        default: true
        }
    }
}
