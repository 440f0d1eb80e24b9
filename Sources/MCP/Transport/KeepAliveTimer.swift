import ServiceLifecycle
import Synchronization

/// Triggers a keep-alive comment on each idle stream, every 15 s at most.
///
/// All streams share one timer, because a timer per request costs more than many requests themselves.
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
    }

    private let state = Mutex(State())
    private let clock: any Clock<Duration>

    package init(clock: any Clock<Duration> = ContinuousClock()) { self.clock = clock }

    package func run() async throws {
        await cancelWhenGracefulShutdown {
            while (try? await self.clock.sleep(for: Self.tickInterval)) != nil { self.tick() }
        }
    }

    /// Registers a stream.
    ///
    /// - Parameters:
    ///   - isSoon: Send the first keep-alive at the next tick.
    ///   - sendKeepAlive: Sends a keep-alive.
    /// - Returns: The number for `unregister`.
    func register(isSoon: Bool = false, _ sendKeepAlive: @escaping @Sendable () -> Void) -> Int {
        state.withLock { state in
            state.count += 1
            state.subscribers[state.count] = Subscriber(
                ticks: isSoon ? Self.ticksPerKeepAlive - 1 : 0,
                sendKeepAlive: sendKeepAlive
            )
            return state.count
        }
    }

    func unregister(_ number: Int) { state.withLock { _ = $0.subscribers.removeValue(forKey: number) } }

    private func tick() {
        let due = state.withLock { state in
            var due: [@Sendable () -> Void] = []
            for number in state.subscribers.keys {
                state.subscribers[number]?.ticks += 1
                guard let subscriber = state.subscribers[number], subscriber.ticks >= Self.ticksPerKeepAlive else {
                    continue
                }
                state.subscribers[number]?.ticks = 0
                due.append(subscriber.sendKeepAlive)
            }
            return due
        }
        for sendKeepAlive in due { sendKeepAlive() }
    }
}
