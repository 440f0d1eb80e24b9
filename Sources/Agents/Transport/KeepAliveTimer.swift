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

    private struct Subscriber {
        var ticks = 0
        let sendKeepAlive: @Sendable () -> Void
    }

    private struct State {
        var subscribers: [Int: Subscriber] = [:]
        /// The subscribers whose first keep-alive is sent soon.
        var soon: [Int: Subscriber] = [:]
        var isTickingSoon = false
        var count = 0
        /// True from the first registration until a tick without subscribers.
        var isTicking = false
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
                group.addTask {
                    await self.repeatTicks(of: self.starts.stream, every: Self.tickInterval) { self.tick() }
                }
                group.addTask {
                    await self.repeatTicks(of: self.soonStarts.stream, every: Self.soonInterval) { self.tickSoon() }
                }
            }
        }
    }

    private func repeatTicks(
        of starts: AsyncStream<Void>,
        every interval: Duration,
        _ tick: @Sendable () -> Bool
    ) async {
        for await _ in starts {
            repeat {
                guard (try? await clock.sleep(for: interval)) != nil else { return }
            } while tick()
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
            let subscriber = Subscriber(sendKeepAlive: sendKeepAlive)
            state.subscribers[state.count] = subscriber
            if isSoon { state.soon[state.count] = subscriber }
            defer {
                state.isTicking = true
                if isSoon { state.isTickingSoon = true }
            }
            return (state.count, !state.isTicking, isSoon && !state.isTickingSoon)
        }
        // A call must not wake the timer each time.
        if isStart { starts.continuation.yield() }
        if isSoonStart { soonStarts.continuation.yield() }
        return number
    }

    func unregister(_ number: Int) {
        state.withLock { state in
            state.subscribers[number] = nil
            state.soon[number] = nil
        }
    }

    /// False while the timer rests.
    var isTicking: Bool { state.withLock { $0.isTicking } }

    /// Sends the keep-alives that are due.
    ///
    /// - Returns: False if there are no subscribers, so that no further tick is needed.
    private func tick() -> Bool {
        let (due, isTicking) = state.withLock { state in
            var due: [@Sendable () -> Void] = []
            for number in state.subscribers.keys {
                state.subscribers[number]?.ticks += 1
                guard let subscriber = state.subscribers[number], subscriber.ticks >= Self.ticksPerKeepAlive else {
                    continue
                }
                state.subscribers[number]?.ticks = 0
                due.append(subscriber.sendKeepAlive)
            }
            state.isTicking = !state.subscribers.isEmpty
            return (due, state.isTicking)
        }
        for sendKeepAlive in due { sendKeepAlive() }
        return isTicking
    }

    /// Sends the first keep-alives that are due.
    ///
    /// - Returns: False if none is left.
    private func tickSoon() -> Bool {
        let (due, isTicking) = state.withLock { state in
            var due: [@Sendable () -> Void] = []
            for number in state.soon.keys {
                state.soon[number]?.ticks += 1
                guard let subscriber = state.soon[number], subscriber.ticks >= Self.ticksPerSoonKeepAlive else {
                    continue
                }
                state.soon[number] = nil
                due.append(subscriber.sendKeepAlive)
            }
            state.isTickingSoon = !state.soon.isEmpty
            return (due, state.isTickingSoon)
        }
        for sendKeepAlive in due { sendKeepAlive() }
        return isTicking
    }
}
