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

    private struct Subscriber {
        var ticks = 0
        let sendKeepAlive: @Sendable () -> Void
    }

    private struct State {
        var subscribers: [Int: Subscriber] = [:]
        var count = 0
        /// True from the first registration until a tick without subscribers.
        var isTicking = false
    }

    private let state = Mutex(State())
    /// A value for each start of the ticks.
    private let starts = AsyncStream.makeStream(of: Void.self, bufferingPolicy: .bufferingNewest(1))
    private let clock: any Clock<Duration>

    package init(clock: any Clock<Duration> = ContinuousClock()) { self.clock = clock }

    package func run() async throws {
        await cancelWhenGracefulShutdown {
            for await _ in self.starts.stream {
                repeat {
                    guard (try? await self.clock.sleep(for: Self.tickInterval)) != nil else { return }
                } while self.tick()
            }
        }
    }

    /// Registers a stream.
    ///
    /// - Parameters:
    ///   - isSoon: Send the first keep-alive at the next tick.
    ///   - sendKeepAlive: Sends a keep-alive.
    /// - Returns: The number for `unregister`.
    func register(isSoon: Bool = false, _ sendKeepAlive: @escaping @Sendable () -> Void) -> Int {
        let (number, isStart) = state.withLock { state in
            state.count += 1
            state.subscribers[state.count] = Subscriber(
                ticks: isSoon ? Self.ticksPerKeepAlive - 1 : 0,
                sendKeepAlive: sendKeepAlive
            )
            defer { state.isTicking = true }
            return (state.count, !state.isTicking)
        }
        // A call must not wake the timer each time.
        if isStart { starts.continuation.yield() }
        return number
    }

    func unregister(_ number: Int) { state.withLock { _ = $0.subscribers.removeValue(forKey: number) } }

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
}
