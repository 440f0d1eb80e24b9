import Client
import Model

/// Keeps something that the broker streams going while the broker restarts.
///
/// The first connection must succeed; after that a broker that goes away is waited for, with growing pauses.
struct RetryingStream {
    var clock: any Clock<Duration> = ContinuousClock()
    /// Told once each time the broker went away, and once when it is back.
    let note: (String) -> Void

    private static let shortest = Duration.milliseconds(200)
    private static let longest = Duration.seconds(2)

    /// Runs `stream` again and again. It calls its argument as soon as the broker has answered it.
    ///
    /// - Throws: What the first run throws before the broker answered, and whatever is not a matter of time.
    func keep(_ stream: (_ answered: () -> Void) async throws -> Void) async throws -> Never {
        var hasAnswered = false
        var isAway = false
        var pause = Self.shortest
        while true {
            do {
                try await stream {
                    if isAway { note("the broker is back") }
                    (hasAnswered, isAway, pause) = (true, false, Self.shortest)
                }
            } catch let error as ClientError where hasAnswered && error.isPassing {
                // Waited for below.
            }
            try Task.checkCancellation()
            guard hasAnswered else { throw ClientError.connectionLost(what: "the first answer") }
            if !isAway { note("the broker went away; waiting for it") }
            isAway = true
            try await clock.sleep(for: pause)
            pause = min(pause * 2, Self.longest)
        }
    }
}

extension ClientError {
    /// Whether waiting mends it: the broker is away, or too busy.
    var isPassing: Bool {
        switch self {
        case .brokerNotRunning, .busy, .timedOut, .connectionLost: true
        case .refused(let problem): problem.code == .unavailable
        case .notPermitted, .unusablePath, .notUnderstood: false
        }
    }
}

/// How long a broker that is away is waited for, with growing pauses; one that restarts is back within seconds.
struct Patience {
    private static let longest = Duration.milliseconds(500)

    let clock: any Clock<Duration>
    let limit: Duration?
    private var pause = Duration.milliseconds(20)
    private var waited = Duration.zero

    var hasWaited: Bool { waited > .zero }

    /// - Parameters:
    ///   - limit: Nil for ever.
    ///   - clock: What to wait by.
    init(_ limit: Duration?, clock: any Clock<Duration>) {
        self.limit = limit
        self.clock = clock
    }

    /// Waits a while; false when it was waited for long enough.
    mutating func wait() async throws -> Bool {
        if let limit, waited >= limit { return false }
        try await clock.sleep(for: pause)
        waited += pause
        pause = min(pause * 2, Self.longest)
        return true
    }
}
