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
        case giveUp(AppError)
    }

    /// The interval between two attempts while the app has a route and does not answer. No event reports that a port is
    /// open again; the app is polled only during a call.
    static let pollInterval = Duration.milliseconds(250)

    private let id: EndpointID
    private let limit: Duration
    private let mayRepeat: Bool
    private var hasRepeated = false

    /// Creates a policy that retries until `limit`. `mayRepeat` permits a second delivery.
    init(of id: EndpointID, for limit: Duration, mayRepeat: Bool) {
        self.id = id
        self.limit = limit
        self.mayRepeat = mayRepeat
    }

    /// Returns the decision after a failed attempt, `elapsed` after the request was received.
    ///
    /// `sinceArrival` is the time since the app's launch or return; nil if neither was observed.
    mutating func decision(after failure: UpstreamError, at elapsed: Duration, sinceArrival: Duration?) -> Decision {
        switch failure {
        case .unreachable(let failure):
            return wait(Self.shouldPoll(failure) ? Self.pollInterval : limit, at: elapsed, or: .unavailable(id))
        case .tokenRequired(.missing):
            // The token of a new launch usually arrives shortly after the launch. An app that has been running for long
            // will not get one by waiting.
            let isNew = sinceArrival.map { $0 < limit } ?? false
            return isNew ? wait(limit, at: elapsed, or: .tokenRequired(id)) : .giveUp(.tokenRequired(id))
        case .tokenRequired(.rejected), .tokenRequired(.outdated):
            return wait(limit, at: elapsed, or: .tokenRequired(id))
        case .responseLost:
            guard mayRepeat, !hasRepeated else { return .giveUp(.responseLost(id)) }
            hasRepeated = true
            return .tryAgain
        case .mismatch(_, let found): return .giveUp(.mismatch(id, found: found))
        case .notApproved: return .giveUp(.notApproved(id))
        case .forbidden(let scope): return .giveUp(.forbidden(id, scope))
        case .timedOut(let seconds): return .giveUp(.timedOut(id, seconds: seconds))
        case .noHandshake(let seconds): return .giveUp(.noHandshake(id, seconds: seconds))
        case .invalidResponse(let what): return .giveUp(.invalidResponse(id, what))
        case .notMCP: return .giveUp(.notMCP(id))
        case .busy: return .giveUp(.busy(id))
        // The next attempt looks the permissions up again.
        case .permissionChanged: return .tryAgain
        }
    }

    private func wait(_ pause: Duration, at elapsed: Duration, or failure: AppError) -> Decision {
        elapsed < limit ? .wait(atMost: min(pause, limit - elapsed)) : .giveUp(failure)
    }

    /// Returns whether the app has an address and may start to listen there without an event.
    private static func shouldPoll(_ failure: DialError) -> Bool {
        switch failure.reason {
        case .noRoute, .deviceAbsent, .usbmuxdAbsent, .forbidden: false
        default: true
        }
    }
}
