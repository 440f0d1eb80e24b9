import Synchronization
import Testing

@testable import Discovery

@Suite struct AvahiThreadExecutorTests {
    private actor Guest {
        nonisolated let loop: AvahiThreadExecutor
        nonisolated var unownedExecutor: UnownedSerialExecutor { loop.asUnownedSerialExecutor() }
        private(set) var turns = 0

        init(_ loop: AvahiThreadExecutor) { self.loop = loop }

        func turn() { turns += 1 }
        func isOnItsThread() -> Bool { loop.isIsolatingCurrentContext() == true }
    }

    @Test func `an actor on the loop runs on its thread, and turns are isolated to it`() async {
        let loop = AvahiThreadExecutor()
        let guest = Guest(loop)
        loop.start { _, _ in
            guest.assumeIsolated { $0.turn() }
            return nil
        }

        #expect(await guest.isOnItsThread())
        #expect(loop.isIsolatingCurrentContext() == false)
        // Whoever asks first may come before the first turn.
        for _ in 0..<10_000 where await guest.turns == 0 { await Task.yield() }
        #expect(await guest.turns > 0)

        loop.stop()
        await loop.ended()
    }

    @Test func `the turn is called again at the moment it asked for, and the last one says so`() async {
        let loop = AvahiThreadExecutor()
        let calls = Mutex([Bool]())
        await withCheckedContinuation { (continuation: CheckedContinuation<Void, Never>) in
            loop.start { _, isLast in
                let count = calls.withLock { calls in
                    calls.append(isLast)
                    return calls.count
                }
                if count == 3 { continuation.resume() }
                return count < 3 ? .now + .milliseconds(5) : nil
            }
        }

        loop.stop()
        await loop.ended()
        await loop.ended()

        #expect(calls.withLock { $0 } == [false, false, false, true])
    }

    @Test func `nudging a loop that has ended does nothing`() async {
        let loop = AvahiThreadExecutor()
        loop.start { _, _ in nil }
        loop.stop()
        await loop.ended()

        loop.nudge()
        loop.stop()
    }
}
