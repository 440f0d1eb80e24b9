import Synchronization
import Testing

@testable import SystemIO

@Suite struct PollerClockTests {
    private let clock = PollerClock()

    @Test func `a sleep ends at its deadline and not before`() async throws {
        let start = clock.now
        try await clock.sleep(for: .milliseconds(30))

        #expect(clock.now - start >= .milliseconds(30))
    }

    @Test func `a sleep with a past deadline returns at once`() async throws {
        try await clock.sleep(for: .seconds(-5))
    }

    @Test func `sleeps end in the order of their deadlines`() async throws {
        let order = try await withThrowingTaskGroup(of: Int.self) { group in
            for number in [40, 10, 30, 20] {
                group.addTask {
                    try await clock.sleep(for: .milliseconds(number))
                    return number
                }
            }
            return try await group.reduce(into: []) { $0.append($1) }
        }

        #expect(order == [10, 20, 30, 40])
    }

    @Test func `a cancelled sleep ends at once, and 10,000 of them leave few timers behind`() async throws {
        let start = clock.now
        for _ in 0..<100 {
            await withTaskGroup(of: Bool.self) { group in
                for _ in 0..<100 {
                    group.addTask { (try? await clock.sleep(for: .seconds(3_600))) != nil }
                }
                group.cancelAll()
                #expect(await !group.contains(true))
            }
        }

        #expect(clock.now - start < .seconds(60))
        #expect(Poller.shared.waiters.withLock { $0.timers.count } < 1_000)
    }

    @Test func `the heap returns the earliest timer first, also after pruning`() {
        var timers = TimerHeap()
        let now = MonotonicInstant.now
        for number in 0..<1_000 { timers.add(UInt64(number), until: now + .seconds(number * 7_919 % 1_000)) }
        timers.prune { $0 % 3 != 0 }

        var last = -1
        while let token = timers.popDue(at: now + .seconds(1_000)) {
            let time = Int(token) * 7_919 % 1_000
            #expect(time > last && token % 3 != 0)
            last = time
        }
        #expect(last > 900 && timers.count == 0)
    }
}
