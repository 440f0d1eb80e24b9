import Testing

@testable import Apps

@Suite struct LaunchWatchScheduleTests {
    @Test func `connections overlap at every age at which a server may close the oldest one`() {
        for lifetime in [Duration.milliseconds(1_100), .seconds(5), .seconds(20), .seconds(120), .seconds(290)] {
            var schedule = LaunchWatchSchedule(at: .zero)
            while let next = schedule.next, next < lifetime { _ = schedule.open(at: next) }
            #expect(schedule.opened.count == 2)
            schedule.close(0, at: lifetime)

            #expect(schedule.lifetime == lifetime)
            #expect(schedule.opened.allSatisfy { $0 + lifetime > lifetime }, "the newer connection is still open")
        }
    }

    @Test func `a known limit of the server is halved, and one connection replaces the other`() {
        var schedule = LaunchWatchSchedule(at: .zero)
        for second in [1, 2, 4] { _ = schedule.open(at: .seconds(second)) }
        schedule.close(0, at: .seconds(5))
        #expect(schedule.opened == [.seconds(4)])
        #expect(schedule.next == .milliseconds(6_500))

        #expect(schedule.open(at: .milliseconds(6_500)) == [0])
        #expect(schedule.opened == [.milliseconds(6_500)])
    }

    @Test func `a server without a limit is watched by one connection after 5 minutes`() {
        var schedule = LaunchWatchSchedule(at: .zero)
        while let next = schedule.next { _ = schedule.open(at: next) }
        #expect(schedule.opened.count == 2)
        #expect(schedule.settling == .seconds(300))

        #expect(schedule.settle(at: .seconds(299)) == [])
        #expect(schedule.settle(at: .seconds(300)) == [1])
        #expect(schedule.opened == [.zero] && schedule.next == nil && schedule.settling == nil)
    }

    @Test func `a failed attempt is repeated after half a second`() {
        var schedule = LaunchWatchSchedule(at: .zero)
        schedule.postpone(at: .seconds(1))
        #expect(schedule.next == .milliseconds(1_500))
    }
}
