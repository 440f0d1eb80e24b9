import Model
import Testing

@testable import Discovery

@Suite struct ReconnectStateMachineTests {
    private let start = ContinuousClock.now

    private func makeStateMachine() -> ReconnectStateMachine { ReconnectStateMachine(now: start, jitter: { 1 }) }

    @Test func `the first attempt is immediate, then delays grow from 50 ms to 10 s`() throws {
        var reconnect = makeStateMachine()
        var now = start
        var delays: [Duration] = []
        for _ in 0..<10 {
            #expect(reconnect.tick(now: now) == .connect)
            reconnect.handle(.failed, now: now)
            let retry = try #require(reconnect.deadline)
            delays.append(retry - now)
            #expect(reconnect.tick(now: now) == nil)
            now = retry
        }

        let milliseconds = delays.map { $0 / .milliseconds(1) }
        #expect(milliseconds == [50, 100, 200, 400, 800, 1_600, 3_200, 6_400, 10_000, 10_000])
    }

    @Test func `a connection that lasted 10 s resets the delays`() {
        var reconnect = makeStateMachine()
        for _ in 0..<8 { reconnect.handle(.failed, now: start) }
        reconnect.handle(.running, now: start)

        reconnect.handle(.failed, now: start + .seconds(11))

        #expect(reconnect.deadline == start + .seconds(11) + ReconnectStateMachine.firstDelay)
    }

    @Test func `a connection that fails at once does not reset the delays`() {
        var reconnect = makeStateMachine()
        for _ in 0..<8 { reconnect.handle(.failed, now: start) }
        reconnect.handle(.running, now: start)

        reconnect.handle(.failed, now: start + .seconds(1))

        #expect(reconnect.deadline == start + .seconds(1) + ReconnectStateMachine.maxDelay)
    }

    @Test func `a client stuck in CONNECTING is abandoned after 10 s, then after longer times`() throws {
        var reconnect = makeStateMachine()
        var limits: [Duration] = []
        for _ in 0..<6 {
            reconnect.handle(.connecting, now: start)
            let giveUp = try #require(reconnect.deadline)
            limits.append(giveUp - start)
            #expect(reconnect.tick(now: giveUp - .milliseconds(1)) == nil)
            #expect(reconnect.tick(now: giveUp) == .giveUp)
            reconnect.handle(.failed, now: start)
        }

        #expect(limits.map { $0 / .seconds(1) } == [10, 20, 40, 60, 60, 60])
    }

    @Test func `a second CONNECTING does not extend the time limit`() {
        var reconnect = makeStateMachine()
        reconnect.handle(.connecting, now: start)
        reconnect.handle(.connecting, now: start + .seconds(9))

        #expect(reconnect.deadline == start + .seconds(10))
    }

    @Test func `browsing works while avahi-daemon registers its host name, publishing works afterwards`() {
        var reconnect = makeStateMachine()
        reconnect.handle(.registering, now: start)
        #expect(reconnect.canBrowse && !reconnect.canPublish && reconnect.deadline == nil)

        reconnect.handle(.running, now: start)
        #expect(reconnect.canBrowse && reconnect.canPublish && reconnect.deadline == nil)

        reconnect.handle(.failed, now: start)
        #expect(!reconnect.canBrowse && !reconnect.canPublish)
    }

    @Test func `the initial sync ends when all browsers finished and all services are resolved, or after 3 s`() {
        var initialSync = InitialSyncTracker(of: [.services(.debug), .pointers(.debug)], now: start)
        initialSync.browserFinished(.services(.debug))
        #expect(!initialSync.isComplete(unresolved: 0, now: start))

        initialSync.browserFinished(.pointers(.debug))
        #expect(!initialSync.isComplete(unresolved: 1, now: start))
        #expect(initialSync.isComplete(unresolved: 0, now: start))
        #expect(initialSync.isComplete(unresolved: 9, now: start + .seconds(3)))
    }
}
