import Client
import Model

/// Repeats a streaming request while the broker restarts.
///
/// The first connection must succeed. Later failures are retried with exponential backoff, 200 ms to 2 s.
struct RetryingStream {
    var clock: any Clock<Duration> = ContinuousClock()
    /// Receives one message when the connection is lost and one when the broker answers again.
    let log: (String) -> Void

    private static let minPause = Duration.milliseconds(200)
    private static let maxPause = Duration.seconds(2)

    /// Runs `stream` repeatedly. `stream` calls its argument when the broker has answered.
    ///
    /// - Throws: Any error before the first answer; later only errors that a retry cannot fix.
    func run(_ stream: (_ answered: () -> Void) async throws -> Void) async throws -> Never {
        var hasAnswered = false
        var isAway = false
        var pause = Self.minPause
        while true {
            do {
                try await stream {
                    if isAway { log("reconnected to the broker") }
                    (hasAnswered, isAway, pause) = (true, false, Self.minPause)
                }
            } catch let error as ClientError where hasAnswered && error.isTemporary {
                // Retried below.
            }
            try Task.checkCancellation()
            guard hasAnswered else { throw ClientError.connectionLost(what: "the first response") }
            if !isAway { log("lost the connection to the broker; reconnecting") }
            isAway = true
            try await clock.sleep(for: pause)
            pause = min(pause * 2, Self.maxPause)
        }
    }
}

extension ClientError {
    /// True if a retry can succeed: the broker restarts or is busy.
    var isTemporary: Bool {
        switch self {
        case .brokerNotRunning, .busy, .timedOut, .connectionLost: true
        case .refused(let problem): problem.code == .unavailable
        case .notPermitted, .unusablePath, .invalidResponse: false
        }
    }
}

/// Exponential backoff with an overall timeout: pauses of 20 ms to 500 ms.
struct Backoff {
    private static let maxPause = Duration.milliseconds(500)

    let clock: any Clock<Duration>
    let limit: Duration?
    private var pause = Duration.milliseconds(20)
    private var waited = Duration.zero

    var hasWaited: Bool { waited > .zero }

    /// - Parameters:
    ///   - limit: The total time to wait; nil for no limit.
    ///   - clock: The clock for the pauses.
    init(_ limit: Duration?, clock: any Clock<Duration>) {
        self.limit = limit
        self.clock = clock
    }

    /// Sleeps for the next pause; returns false without sleeping after the timeout.
    mutating func wait() async throws -> Bool {
        if let limit, waited >= limit { return false }
        try await clock.sleep(for: pause)
        waited += pause
        pause = min(pause * 2, Self.maxPause)
        return true
    }
}
