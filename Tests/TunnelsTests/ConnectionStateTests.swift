import Model
import SystemIO
import Testing

@testable import Tunnels

/// The state machine of a connection, from the accept to the handover. The tests make no system call.
@Suite struct ConnectionStateTests {
    private let start = MonotonicInstant.now
    private let firstByteTimeout = Duration.milliseconds(20)
    private let failure = DialError(.foreignUser, "another user")

    private func at(_ milliseconds: Int) -> MonotonicInstant { start + .milliseconds(milliseconds) }

    /// Returns a machine that has made these transitions at the start.
    private func machine(inspects: Bool = true, after events: ConnectionState.Event...) -> ConnectionState {
        var state = ConnectionState(firstByteTimeout: inspects ? firstByteTimeout : nil)
        for event in [.accepted] + events { _ = state.handle(event, now: start) }
        return state
    }

    /// Returns a machine whose socket connects, with a connect timeout of 1 s.
    private func connecting(hasOtherRoutes: Bool = false) -> ConnectionState {
        machine(
            inspects: false,
            after: .checked(.passes),
            .planned(timeout: .seconds(1), hasOtherRoutes: hasOtherRoutes),
            .slotFree
        )
    }

    @Test func `a client passes the stations in order`() {
        var state = ConnectionState(firstByteTimeout: firstByteTimeout)

        let steps: [(ConnectionState.Event, ConnectionState.Action)] = [
            (.accepted, .checkClient), (.checked(.passes), .inspect), (.inspected(.passes), .selectPlan),
            (.planned(timeout: .seconds(1), hasOtherRoutes: false), .awaitSlot), (.slotFree, .connect),
            (.connected(hasHandshake: true), .sendRequest), (.verified, .relay),
        ]
        for (event, action) in steps { #expect(state.handle(event, now: start) == action) }
    }

    @Test func `a client that fails the check is never inspected and never dialed`() {
        var refused = machine(after: .checked(.refused(failure)))
        var gone = ConnectionState(firstByteTimeout: firstByteTimeout)
        _ = gone.handle(.accepted, now: start)

        #expect(refused.phase == .ended)
        #expect(refused.handle(.inspected(.passes), now: start) == .wait)
        #expect(gone.handle(.checked(.disconnected), now: start) == .end(nil))
    }

    @Test func `a silent client is dialed after its time, and the relay continues the inspection`() {
        var state = machine(after: .checked(.passes))

        #expect(state.handle(.inspected(.undecided(until: nil)), now: at(0)) == .wait)
        #expect(state.deadline == at(20))
        #expect(state.handle(.deadlineReached, now: at(20)) == .inspect)
        #expect(state.handle(.inspected(.undecided(until: nil)), now: at(20)) == .selectPlan)
    }

    @Test func `an incomplete request is awaited, and inspected again with each byte`() {
        var state = machine(after: .checked(.passes))

        #expect(state.handle(.inspected(.undecided(until: at(5_000))), now: at(1)) == .wait)
        #expect(state.deadline == at(5_000))
        #expect(state.handle(.clientReadable, now: at(2)) == .inspect)
    }

    @Test func `a rejected client goes to the relay without a target`() {
        var state = machine(after: .checked(.passes))

        #expect(state.handle(.inspected(.refused(.origin)), now: start) == .reject(.origin))
        #expect(state.phase == .ended && state.deadline == nil)
        #expect(state.handle(.clientReadable, now: at(1)) == .wait)
    }

    @Test func `a full accept queue is tried again with growing delays until the timeout`() {
        var state = connecting()
        var now = start
        var delays: [Duration] = []

        while now < at(1_000) {
            #expect(state.handle(.queueFull, now: now) == .wait)
            guard let deadline = state.deadline else {
                Issue.record("there is no deadline")
                return
            }
            delays.append(deadline - now)
            now = deadline
            if now < at(1_000) {
                #expect(state.handle(.deadlineReached, now: now) == .connect)
            }
        }

        #expect(delays.prefix(3) == [.milliseconds(1), .milliseconds(2), .milliseconds(4)])
        #expect(delays.allSatisfy { $0 <= .milliseconds(50) })
        #expect(state.handle(.deadlineReached, now: now) == .startFallback)
    }

    @Test func `a connection without a permit asks for a permit and a slot again`() {
        var state = machine(inspects: false, after: .checked(.passes))
        #expect(state.handle(.planned(timeout: .seconds(10), hasOtherRoutes: false), now: start) == .awaitSlot)
        #expect(state.handle(.queueFull, now: start) == .wait)
        #expect(state.deadline == at(1))
        #expect(state.handle(.deadlineReached, now: at(1)) == .awaitSlot)
        #expect(state.phase == .queued)
    }

    @Test func `without a plan, and after a failed one, a task plans again and connects`() {
        var unknown = machine(inspects: false, after: .checked(.passes))
        var failed = connecting()

        #expect(unknown.handle(.notPlanned, now: start) == .startFallback)
        #expect(failed.handle(.planFailed, now: start) == .startFallback)
        var other = failed
        #expect(failed.handle(.fallbackConnected, now: start) == .relay)
        #expect(other.handle(.fallbackFailed(failure), now: start) == .end(failure))
    }

    @Test func `a slow network address races with the other routes, and the first stream is used`() {
        var single = connecting()
        var several = connecting(hasOtherRoutes: true)

        #expect(single.deadline == at(1_000))
        #expect(single.handle(.fallbackConnected, now: start) == .wait)
        #expect(several.deadline == at(250))
        #expect(several.handle(.deadlineReached, now: at(250)) == .race)
        #expect(several.deadline == at(1_000))
        var (own, other, failed) = (several, several, several)
        #expect(own.handle(.connected(hasHandshake: false), now: at(300)) == .relay)
        #expect(other.handle(.fallbackConnected, now: at(300)) == .relay)
        #expect(failed.handle(.planFailed, now: at(300)) == .abandonPlan)
        #expect(failed.handle(.fallbackConnected, now: at(400)) == .relay)
    }

    @Test func `a race that the other routes lose leaves the connect as it is`() {
        var state = connecting(hasOtherRoutes: true)
        _ = state.handle(.deadlineReached, now: at(250))

        #expect(state.handle(.fallbackFailed(failure), now: at(300)) == .wait)
        #expect(state.phase == .connecting && state.deadline == at(1_000))
        #expect(state.handle(.deadlineReached, now: at(1_000)) == .startFallback)
    }

    @Test func `a device that does not answer the request is a timeout`() {
        var state = connecting()
        _ = state.handle(.connected(hasHandshake: true), now: at(1))

        #expect(state.phase == .handshaking && state.deadline == at(1_000))
        #expect(state.handle(.deadlineReached, now: at(1_000)) == .startFallback)
    }

    @Test func `a client that disconnects ends the connection in every phase, without a failure`() {
        var inspected = machine(after: .checked(.passes))
        var queued = machine(
            inspects: false,
            after: .checked(.passes),
            .planned(timeout: .seconds(1), hasOtherRoutes: false)
        )
        var connecting = connecting()
        var fallback = machine(inspects: false, after: .checked(.passes), .notPlanned)

        #expect(inspected.handle(.clientDisconnected, now: start) == .end(nil))
        #expect(queued.handle(.clientDisconnected, now: start) == .end(nil))
        #expect(connecting.handle(.clientDisconnected, now: start) == .end(nil))
        #expect(fallback.handle(.clientDisconnected, now: start) == .end(nil))
        #expect(fallback.handle(.fallbackConnected, now: start) == .wait)
    }

    @Test func `a revoked approval and a refusal of the policy end the connection`() {
        var revoked = connecting()
        var refused = machine(inspects: false, after: .checked(.passes))

        guard case .end(let error?) = revoked.handle(.networkRevoked, now: start) else {
            Issue.record("the connection goes on")
            return
        }
        #expect(error.reason == .forbidden)
        #expect(refused.handle(.refused(failure), now: start) == .end(failure))
    }
}
