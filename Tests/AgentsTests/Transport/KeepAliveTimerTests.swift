import TestSupport
import Testing

@testable import Agents
@testable import Apps

@Suite(.timeLimit(.minutes(1))) struct KeepAliveTimerTests {
    @Test func `the timer rests without streams, and ticks again for the next stream`() async {
        let clock = ManualClock()
        let timer = KeepAliveTimer(clock: clock)
        let (keepAlives, keepAlive) = AsyncStream.makeStream(of: Void.self)

        await withTaskGroup { group in
            group.addTask { try? await timer.run() }
            timer.unregister(timer.register {})
            await clock.waitForSleeper()
            clock.advance(by: KeepAliveTimer.tickInterval)
            while timer.isTicking { await Task.yield() }

            _ = timer.register { keepAlive.yield() }
            for _ in 1...3 {
                await clock.waitForSleeper()
                clock.advance(by: KeepAliveTimer.tickInterval)
            }
            for await _ in keepAlives { break }
            group.cancelAll()
        }

        #expect(timer.isTicking)
    }

    @Test func `a stream that begins soon gets its first keep-alive at the second short tick, and only one`() async {
        let clock = ManualClock()
        let timer = KeepAliveTimer(clock: clock)
        let (keepAlives, keepAlive) = AsyncStream.makeStream(of: Void.self)

        await withTaskGroup { group in
            group.addTask { try? await timer.run() }
            let quick = timer.register(isSoon: true) { Issue.record("the quick call has ended") }
            _ = timer.register(isSoon: true) { keepAlive.yield() }
            await clock.waitForSleepers(2)
            clock.advance(by: KeepAliveTimer.soonInterval)
            timer.unregister(quick)
            await clock.waitForSleepers(2)
            clock.advance(by: KeepAliveTimer.soonInterval)
            for await _ in keepAlives { break }
            group.cancelAll()
        }
        keepAlive.finish()

        #expect(await keepAlives.reduce(0) { count, _ in count + 1 } == 0)
    }
}
