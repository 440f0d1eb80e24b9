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
