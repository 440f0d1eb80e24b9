import Testing

@testable import SystemIO

@Suite struct PollerClockTests {
    private let clock = PollerClock()

    @Test func `a sleeper is woken at its time and not before`() async throws {
        let start = clock.now
        try await clock.sleep(for: .milliseconds(30))

        #expect(clock.now - start >= .milliseconds(30))
    }

    @Test func `a time that has passed is no sleep`() async throws {
        try await clock.sleep(for: .seconds(-5))
    }

    @Test func `sleepers are woken in the order of their times, whoever came first`() async throws {
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

    @Test func `a sleeper that is cancelled is awake at once, and 10,000 of them leave nothing behind`() async throws {
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
        #expect(Poller.shared.sleeperCount < 1_000)
    }

    @Test func `the earliest of many comes first, with and without those that are gone`() {
        var sleepers = TimerHeap()
        let now = ContinuousClock.now
        for number in 0..<1_000 { sleepers.add(UInt64(number), until: now + .seconds(number * 7_919 % 1_000)) }
        sleepers.prune { $0 % 3 != 0 }

        var last = -1
        while let token = sleepers.next(at: now + .seconds(1_000)) {
            let time = Int(token) * 7_919 % 1_000
            #expect(time > last && token % 3 != 0)
            last = time
        }
        #expect(last > 900 && sleepers.count == 0)
    }

    @Test func `a task that prefers the poller runs on its thread, waits there, and shares it`() async throws {
        let names = await withTaskExecutorPreference(Poller.shared) {
            await withTaskGroup(of: String.self) { group in
                for _ in 0..<10 {
                    group.addTask {
                        try? await clock.sleep(for: .milliseconds(1))
                        return Thread.name
                    }
                }
                return await group.reduce(into: Set()) { $0.insert($1) }
            }
        }

        #expect(names == ["patchbay-poll"])
    }
}
