import Model
import SystemIO

/// The state machine of a connection, from the accept to the handover to the relay. It makes no system call.
///
/// The event loop performs each action and reports the result as the next event. The stations are listener, check,
/// connector, relay and end; this machine covers the first three.
struct ConnectionState {
    typealias Instant = MonotonicInstant

    enum Phase: Hashable, Sendable {
        /// The client's user is looked up.
        case checking
        /// The client's first bytes are awaited.
        case holding
        /// Too many connects are in flight, or no permit is free.
        case queued
        /// The socket connects, or waits to try again.
        case connecting
        /// The peer has the request and has not replied.
        case handshaking
        /// The routes are planned again and connected on a task.
        case dialing
        /// The client has the response of a rejection. Its close is awaited.
        case rejecting
        case ended
    }

    enum Inspection: Hashable, Sendable {
        case passes
        case refused(BrowserGuard.Refusal)
        /// The client sent nothing yet.
        case silent
        /// The bytes may become a request. They are inspected again when more arrive, and at this time.
        case undecided(until: Instant)
    }

    enum Event {
        case accepted
        case checked(ClientOwnerCheck.Decision)
        case clientReadable
        /// The client closed both directions and left no bytes.
        case clientDisconnected
        case inspected(Inspection)
        /// The target has a plan. A slow network address does not delay its other routes.
        case planned(timeout: Duration, hasOtherRoutes: Bool)
        /// The target has no plan for the event loop, or the plan is outdated.
        case notPlanned
        /// The policy refuses the connection.
        case refused(DialError)
        case placeFree
        case connected(hasHandshake: Bool)
        /// The server's accept queue is full (EAGAIN of connect(2)), or no permit is free.
        case queueFull
        case planFailed
        case verified
        case dialed
        case dialFailed(DialError)
        /// The approval of the network route was revoked.
        case networkRevoked
        case deadlineReached
    }

    enum Action: Hashable, Sendable {
        case checkClient
        case inspect
        case selectPlan
        case awaitPlace
        case connect
        case sendRequest
        case dial
        /// Connect the other routes too, on a task.
        case race
        /// Give up the plan, because a task connects the other routes.
        case abandonPlan
        /// Hand both sockets to the relay.
        case relay
        case respond(BrowserGuard.Refusal)
        case discardInput
        /// Close the connection; with an error the failure is counted and reported.
        case end(DialError?)
        case wait
    }

    private(set) var phase = Phase.checking
    /// The time at which the machine needs `deadlineReached`; nil if it needs none.
    private(set) var deadline: Instant?

    private let inspects: Bool
    private let timeouts: InspectionTimeouts
    private var connectDeadline: Instant?
    /// The time at which the other routes are tried too; nil if there are none, or if they are.
    private var raceStart: Instant?
    /// The time of the next attempt at a full accept queue.
    private var retryTime: Instant?
    /// True while a task connects the other routes.
    private var isRacing = false
    private var retryDelay = Backoff.queueFull

    /// - Parameters:
    ///   - inspects: True if the client's first bytes are inspected before the dial.
    ///   - timeouts: The timeouts of the inspection.
    init(inspects: Bool, timeouts: InspectionTimeouts) {
        self.inspects = inspects
        self.timeouts = timeouts
    }

    /// Handles an event.
    ///
    /// - Returns: The action to perform now.
    mutating func handle(_ event: Event, now: Instant) -> Action {
        switch (phase, event) {
        case (.ended, _): return .wait
        case (.checking, .accepted): return .checkClient
        case (.checking, .checked(.passes)): return inspects ? hold(now) : select()
        case (.checking, .checked(.disconnected)): return end(nil)
        case (.checking, .checked(.refused(let failure))): return end(failure)
        case (.holding, _): return handleWhileHolding(event, now)
        case (.rejecting, .clientReadable): return .discardInput
        case (.rejecting, .clientDisconnected), (.rejecting, .deadlineReached): return end(nil)
        case (_, .clientDisconnected): return end(nil)
        case (_, .networkRevoked): return end(Self.revoked)
        case (_, .refused(let failure)), (.dialing, .dialFailed(let failure)): return end(failure)
        case (.dialing, .dialed): return .relay
        case (.dialing, _): return .wait
        default: return handleWhileConnecting(event, now)
        }
    }

    private mutating func hold(_ now: Instant) -> Action {
        phase = .holding
        deadline = now + timeouts.firstByte
        return .inspect
    }

    private mutating func handleWhileHolding(_ event: Event, _ now: Instant) -> Action {
        switch event {
        case .inspected(.passes): return select()
        case .inspected(.refused(let refusal)):
            phase = .rejecting
            deadline = now + timeouts.drain
            return .respond(refusal)
        case .inspected(.silent):
            // The server may speak first. The relay continues the inspection.
            return deadline.map { now >= $0 } == true ? select() : .wait
        case .inspected(.undecided(let end)):
            deadline = end
            return .wait
        case .clientReadable, .deadlineReached: return .inspect
        case .clientDisconnected: return end(nil)
        default: return .wait
        }
    }

    private mutating func select() -> Action {
        phase = .queued
        deadline = nil
        return .selectPlan
    }

    private mutating func handleWhileConnecting(_ event: Event, _ now: Instant) -> Action {
        switch event {
        case .planned(let timeout, let hasOtherRoutes):
            connectDeadline = now + timeout
            raceStart = hasOtherRoutes ? now + Relay.attemptDelay : nil
            return wait(.awaitPlace)
        case .placeFree:
            phase = .connecting
            return .connect
        case .queueFull:
            retryTime = now + retryDelay.next()
            return wait(.wait)
        case .connected(true):
            phase = .handshaking
            return wait(.sendRequest)
        case .connected(false), .verified: return .relay
        case .dialed where isRacing: return .relay
        case .dialFailed:
            isRacing = false
            return .wait
        case .notPlanned, .planFailed: return dial()
        case .deadlineReached: return handleDeadline(now)
        default: return .wait
        }
    }

    private mutating func handleDeadline(_ now: Instant) -> Action {
        if let connectDeadline, now >= connectDeadline { return dial() }
        if let raceStart, now >= raceStart {
            (self.raceStart, isRacing) = (nil, true)
            return wait(.race)
        }
        guard let retryTime, now >= retryTime else { return wait(.wait) }
        self.retryTime = nil
        return wait(phase == .queued ? .awaitPlace : .connect)
    }

    /// Sets the next deadline.
    private mutating func wait(_ action: Action) -> Action {
        deadline = connectDeadline
        if let raceStart { deadline = deadline.map { min($0, raceStart) } }
        if let retryTime { deadline = deadline.map { min($0, retryTime) } }
        return action
    }

    private mutating func dial() -> Action {
        phase = .dialing
        deadline = nil
        return isRacing ? .abandonPlan : .dial
    }

    private mutating func end(_ failure: DialError?) -> Action {
        phase = .ended
        deadline = nil
        return .end(failure)
    }

    private static let revoked = DialError(.forbidden, "its approval was revoked during the dial")
}
