import Apps
import ServiceLifecycle
import Synchronization

/// Triggers a keep-alive comment on each idle stream, every 15 s at most.
///
/// All streams share one timer, because a timer per request costs more than many requests themselves. The timer rests
/// while there are no streams.
package final class KeepAliveTimer: Service {
    /// The time between two ticks. A keep-alive is sent at the third tick.
    static let tickInterval = Duration.seconds(5)
    private static let ticksPerKeepAlive = 3
    /// The time between two ticks for streams that begin soon. The first keep-alive is sent at the second tick, so that
    /// quick calls need none.
    static let soonInterval = Duration.milliseconds(50)
    private static let ticksPerSoonKeepAlive = 2

    /// The streams of one interval.
    private struct Schedule {
        /// The number of ticks until a keep-alive.
        let period: Int
        /// False if a stream leaves the schedule with its first keep-alive.
        let isRepeating: Bool
        var streams: [Int: (ticks: Int, sendKeepAlive: @Sendable () -> Void)] = [:]
        /// True from the first registration until a tick without streams.
        var isTicking = false

        /// Adds a stream.
        ///
        /// - Returns: Whether the ticks must be started. A call must not wake the timer each time.
        mutating func add(_ number: Int, _ sendKeepAlive: @escaping @Sendable () -> Void) -> Bool {
            streams[number] = (0, sendKeepAlive)
            defer { isTicking = true }
            return !isTicking
        }

        /// Returns the keep-alives that are due.
        mutating func tick() -> [@Sendable () -> Void] {
            for number in streams.keys { streams[number]?.ticks += 1 }
            let due = streams.filter { $0.value.ticks >= period }
            for number in due.keys { if isRepeating { streams[number]?.ticks = 0 } else { streams[number] = nil } }
            isTicking = !streams.isEmpty
            return due.values.map(\.sendKeepAlive)
        }
    }

    private struct State {
        var all = Schedule(period: KeepAliveTimer.ticksPerKeepAlive, isRepeating: true)
        /// The streams whose first keep-alive is sent soon.
        var soon = Schedule(period: KeepAliveTimer.ticksPerSoonKeepAlive, isRepeating: false)
        var count = 0
    }

    private let state = Mutex(State())
    /// A value for each start of the ticks.
    private let starts = AsyncStream.makeStream(of: Void.self, bufferingPolicy: .bufferingNewest(1))
    private let soonStarts = AsyncStream.makeStream(of: Void.self, bufferingPolicy: .bufferingNewest(1))
    private let clock: any Clock<Duration>

    package init(clock: any Clock<Duration> = ContinuousClock()) { self.clock = clock }

    package func run() async throws {
        await cancelWhenGracefulShutdown {
            await withDiscardingTaskGroup { group in
                group.addTask { await self.repeatTicks(of: \.all, after: self.starts.stream, every: Self.tickInterval) }
                group.addTask {
                    await self.repeatTicks(of: \.soon, after: self.soonStarts.stream, every: Self.soonInterval)
                }
            }
        }
    }

    private func repeatTicks(
        of schedule: any WritableKeyPath<State, Schedule> & Sendable,
        after starts: AsyncStream<Void>,
        every interval: Duration
    ) async {
        for await _ in starts {
            var isTicking = true
            while isTicking {
                guard (try? await clock.sleep(for: interval)) != nil else { return }
                let due = state.withLock { state in
                    defer { isTicking = state[keyPath: schedule].isTicking }
                    return state[keyPath: schedule].tick()
                }
                for sendKeepAlive in due { sendKeepAlive() }
            }
        }
    }

    /// Registers a stream.
    ///
    /// - Parameters:
    ///   - isSoon: Send the first keep-alive within `soonInterval` twice.
    ///   - sendKeepAlive: Sends a keep-alive.
    /// - Returns: The number for `unregister`.
    func register(isSoon: Bool = false, _ sendKeepAlive: @escaping @Sendable () -> Void) -> Int {
        let (number, isStart, isSoonStart) = state.withLock { state in
            state.count += 1
            return (
                state.count, state.all.add(state.count, sendKeepAlive),
                isSoon && state.soon.add(state.count, sendKeepAlive)
            )
        }
        if isStart { starts.continuation.yield() }
        if isSoonStart { soonStarts.continuation.yield() }
        return number
    }

    func unregister(_ number: Int) {
        state.withLock { state in
            state.all.streams[number] = nil
            state.soon.streams[number] = nil
        }
    }

    /// False while the timer rests.
    var isTicking: Bool { state.withLock { $0.all.isTicking } }
}
