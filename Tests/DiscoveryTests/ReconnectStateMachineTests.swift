import Model
import Testing

@testable import Discovery

@Suite struct ReconnectStateMachineTests {
    private let start = ContinuousClock.now

    private func makeRecovery() -> ReconnectStateMachine { ReconnectStateMachine(now: start, jitter: { 1 }) }

    @Test func `the first attempt is made at once, the next ones after 50 ms to 2 s, and after a minute every 10 s`()
        throws
    {
        var recovery = makeRecovery()
        var now = start
        var delays: [Duration] = []
        for _ in 0..<40 {
            #expect(recovery.tick(now: now) == .connect)
            recovery.handle(.failed, now: now)
            let retry = try #require(recovery.deadline)
            delays.append(retry - now)
            #expect(recovery.tick(now: now) == nil)
            now = retry
        }

        #expect(delays.prefix(7).map { $0 / .milliseconds(1) } == [50, 100, 200, 400, 800, 1600, 2000])
        #expect(delays.last == .seconds(10))
        #expect(delays == delays.sorted())
    }

    @Test func `a connection that stood for a while begins the delays again`() {
        var recovery = makeRecovery()
        for _ in 0..<8 { recovery.handle(.failed, now: start) }
        recovery.handle(.running, now: start)

        recovery.handle(.failed, now: start + .seconds(11))

        #expect(recovery.deadline == start + .seconds(11) + ReconnectStateMachine.firstDelay)
    }

    @Test func `a connection that breaks at once does not begin them again`() {
        var recovery = makeRecovery()
        for _ in 0..<8 { recovery.handle(.failed, now: start) }
        recovery.handle(.running, now: start)

        recovery.handle(.failed, now: start + .seconds(1))

        #expect(recovery.deadline == start + .seconds(1) + ReconnectStateMachine.shortDelay)
    }

    @Test func `a client stuck in CONNECTING is given up after 10 s, and after longer each time`() throws {
        var recovery = makeRecovery()
        var limits: [Duration] = []
        for _ in 0..<6 {
            recovery.handle(.connecting, now: start)
            let giveUp = try #require(recovery.deadline)
            limits.append(giveUp - start)
            #expect(recovery.tick(now: giveUp - .milliseconds(1)) == nil)
            #expect(recovery.tick(now: giveUp) == .giveUp)
            recovery.handle(.failed, now: start)
        }

        #expect(limits.map { $0 / .seconds(1) } == [10, 20, 40, 60, 60, 60])
    }

    @Test func `a second CONNECTING does not extend the time`() {
        var recovery = makeRecovery()
        recovery.handle(.connecting, now: start)
        recovery.handle(.connecting, now: start + .seconds(9))

        #expect(recovery.deadline == start + .seconds(10))
    }

    @Test func `browsing begins while the daemon settles its name, publishing when it has`() {
        var recovery = makeRecovery()
        recovery.handle(.registering, now: start)
        #expect(recovery.canBrowse && !recovery.canPublish && recovery.deadline == nil)

        recovery.handle(.running, now: start)
        #expect(recovery.canBrowse && recovery.canPublish && recovery.deadline == nil)

        recovery.handle(.failed, now: start)
        #expect(!recovery.canBrowse && !recovery.canPublish)
    }

    @Test func `everything is said when all browsers said so and all is resolved, or after 3 s`() {
        var reconciliation = InitialSync(of: [.services(.debug), .pointers(.debug)], now: start)
        reconciliation.heard(.services(.debug))
        #expect(!reconciliation.isComplete(unresolved: 0, now: start))

        reconciliation.heard(.pointers(.debug))
        #expect(!reconciliation.isComplete(unresolved: 1, now: start))
        #expect(reconciliation.isComplete(unresolved: 0, now: start))
        #expect(reconciliation.isComplete(unresolved: 9, now: start + .seconds(3)))
    }
}
