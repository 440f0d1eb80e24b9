import Synchronization
import Testing

@testable import Discovery

@Suite struct AvahiThreadExecutorTests {
    private actor TestActor {
        nonisolated let executor: AvahiThreadExecutor
        nonisolated var unownedExecutor: UnownedSerialExecutor { executor.asUnownedSerialExecutor() }
        private(set) var cycles = 0

        init(_ executor: AvahiThreadExecutor) { self.executor = executor }

        func cycle() { cycles += 1 }
        func isOnItsThread() -> Bool { executor.isIsolatingCurrentContext() == true }
    }

    @Test func `an actor on the executor runs on its thread, and cycles are isolated to the actor`() async {
        let executor = AvahiThreadExecutor()
        let testActor = TestActor(executor)
        executor.start { _, _ in
            testActor.assumeIsolated { $0.cycle() }
            return nil
        }

        #expect(await testActor.isOnItsThread())
        #expect(executor.isIsolatingCurrentContext() == false)
        // This call may run before the first cycle.
        for _ in 0..<10_000 where await testActor.cycles == 0 { await Task.yield() }
        #expect(await testActor.cycles > 0)

        executor.stop()
        await executor.ended()
    }

    @Test func `a cycle runs again at its requested time, and the last cycle is marked`() async {
        let executor = AvahiThreadExecutor()
        let calls = Mutex([Bool]())
        await withCheckedContinuation { (continuation: CheckedContinuation<Void, Never>) in
            executor.start { _, isLast in
                let count = calls.withLock { calls in
                    calls.append(isLast)
                    return calls.count
                }
                if count == 3 { continuation.resume() }
                return count < 3 ? .now + .milliseconds(5) : nil
            }
        }

        executor.stop()
        await executor.ended()
        await executor.ended()

        #expect(calls.withLock { $0 } == [false, false, false, true])
    }

    @Test func `waking an executor that has ended does nothing`() async {
        let executor = AvahiThreadExecutor()
        executor.start { _, _ in nil }
        executor.stop()
        await executor.ended()

        executor.wakeUp()
        executor.stop()
    }
}
