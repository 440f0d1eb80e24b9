import Client
import Model
import SystemIO

/// Repeats a streaming request while the broker restarts.
///
/// The first connection must succeed. Later failures are retried with exponential backoff.
struct RetryingStream {
    var clock: any Clock<Duration> = ContinuousClock()
    /// The number of failed attempts in a row after which the last error is thrown; nil retries for ever. The pauses of
    /// 30 attempts take about a minute.
    var attemptLimit: Int?
    /// Receives one message when the connection is lost and one when the broker answers again.
    let log: (String) -> Void

    /// Runs `stream` repeatedly. `stream` calls its argument when the broker has answered.
    ///
    /// - Throws: Any error before the first answer; later only errors that a retry cannot fix, and the last error at the
    ///   limit of attempts.
    func run(_ stream: (_ answered: () -> Void) async throws -> Void) async throws -> Never {
        var hasAnswered = false
        var isAway = false
        var failures = 0
        var backoff = Backoff.streaming
        while true {
            do {
                try await stream {
                    if isAway { log("reconnected to the broker") }
                    (hasAnswered, isAway, failures) = (true, false, 0)
                    backoff.reset()
                }
            } catch let error as ClientError where hasAnswered && error.isTemporary {
                failures += 1
                if let attemptLimit, failures >= attemptLimit { throw error }
            }
            try Task.checkCancellation()
            guard hasAnswered else { throw ClientError.connectionLost(what: "the first response") }
            if !isAway { log("lost the connection to the broker; reconnecting") }
            isAway = true
            try await backoff.wait(clock: clock)
        }
    }
}

extension ClientError {
    /// True if a retry can succeed: the broker restarts or is busy.
    var isTemporary: Bool {
        switch self {
        case .brokerNotRunning, .busy, .timedOut, .connectionLost, .noRemoteBroker, .noListener, .unreachable: true
        // A refused login would only be refused again.
        case .sshFailed(_, _, let isLost): isLost
        case .refused(let problem): problem.code == .unavailable
        case .notPermitted, .unusablePath, .invalidResponse, .invalidDestination, .sshMissing, .noRemotePermission,
            .otherKey, .keyRefused, .notTrusted, .tlsFailed:
            false
        }
    }
}

extension Backoff {
    /// The pauses between two attempts to stream from the broker while it restarts: 200 ms to 2 s.
    static var streaming: Backoff { Backoff(from: .milliseconds(200), to: .seconds(2)) }
}
