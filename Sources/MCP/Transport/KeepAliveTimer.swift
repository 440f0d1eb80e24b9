import ServiceLifecycle
import Synchronization

/// Tells whoever waits in silence, every 15 s at most, that it is time for a sign of life.
///
/// One timer for all: a timer for each request costs more than many a request.
package final class KeepAliveTimer: Service {
    /// Between two looks; a silence is broken at the third.
    static let pause = Duration.seconds(5)
    private static let patience = 3

    private struct Listener {
        var looks = 0
        let beat: @Sendable () -> Void
    }

    private struct State {
        var listeners: [Int: Listener] = [:]
        var count = 0
    }

    private let state = Mutex(State())
    private let clock: any Clock<Duration>

    package init(clock: any Clock<Duration> = ContinuousClock()) { self.clock = clock }

    package func run() async throws {
        await cancelWhenGracefulShutdown {
            while (try? await self.clock.sleep(for: Self.pause)) != nil { self.look() }
        }
    }

    /// The first beat comes with the first look where it is to be soon.
    ///
    /// - Returns: What to leave with.
    func join(isSoon: Bool = false, _ beat: @escaping @Sendable () -> Void) -> Int {
        state.withLock { state in
            state.count += 1
            state.listeners[state.count] = Listener(looks: isSoon ? Self.patience - 1 : 0, beat: beat)
            return state.count
        }
    }

    func leave(_ number: Int) { state.withLock { _ = $0.listeners.removeValue(forKey: number) } }

    private func look() {
        let due = state.withLock { state in
            var due: [@Sendable () -> Void] = []
            for number in state.listeners.keys {
                state.listeners[number]?.looks += 1
                guard let listener = state.listeners[number], listener.looks >= Self.patience else { continue }
                state.listeners[number]?.looks = 0
                due.append(listener.beat)
            }
            return due
        }
        for beat in due { beat() }
    }
}
