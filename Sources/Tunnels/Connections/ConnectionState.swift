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
        case inspecting
        /// Too many connects are in flight, or no permit is free.
        case queued
        /// The socket connects, or waits to try again.
        case connecting
        /// The peer has the request and has not replied.
        case handshaking
        /// A task plans the routes again and connects.
        case fallback
        /// The connection has ended, or the relay rejects the client.
        case ended
    }

    enum Event {
        case accepted
        case checked(ClientOwnerCheck.Decision)
        case clientReadable
        /// The client closed both directions and left no bytes.
        case clientDisconnected
        case inspected(RelayInspector.Decision)
        /// The target has a plan. A slow network address does not delay its other routes.
        case planned(timeout: Duration, hasOtherRoutes: Bool)
        /// The target has no plan for the event loop, or the plan is outdated.
        case notPlanned
        /// The policy refuses the connection.
        case refused(DialError)
        case slotFree
        case connected(hasHandshake: Bool)
        /// The server's accept queue is full (EAGAIN of connect(2)), or no permit is free.
        case queueFull
        case planFailed
        case verified
        case fallbackConnected
        case fallbackFailed(DialError)
        /// The approval of the network route was revoked.
        case networkRevoked
        case deadlineReached
    }

    enum Action: Hashable, Sendable {
        case checkClient
        case inspect
        case selectPlan
        case awaitSlot
        case connect
        case sendRequest
        case startFallback
        /// Connect the other routes too, by the fallback.
        case race
        /// Give up the plan, because the fallback connects the other routes.
        case abandonPlan
        /// Hand both sockets to the relay.
        case relay
        /// Hand the client to the relay, which sends the response and awaits the close.
        case reject(BrowserGuard.Refusal)
        /// Close the connection; with an error the failure is counted and reported.
        case end(DialError?)
        case wait
    }

    private(set) var phase = Phase.checking
    /// The time at which the machine needs `deadlineReached`; nil if it needs none.
    private(set) var deadline: Instant?

    private let firstByteTimeout: Duration?
    private var connectDeadline: Instant?
    /// The time at which the other routes are tried too; nil if there are none, or if they are.
    private var raceStart: Instant?
    /// The time of the next attempt at a full accept queue.
    private var retryTime: Instant?
    /// True while the fallback connects the other routes.
    private var isRacing = false
    private var retryDelay = Backoff.queueFull

    /// - Parameter firstByteTimeout: The time for the client's first byte; nil if its bytes are not inspected.
    init(firstByteTimeout: Duration?) { self.firstByteTimeout = firstByteTimeout }

    /// Handles an event.
    ///
    /// - Returns: The action to perform now.
    mutating func handle(_ event: Event, now: Instant) -> Action {
        switch (phase, event) {
        case (.ended, _): return .wait
        case (.checking, .accepted): return .checkClient
        case (.checking, .checked(.passes)): return inspect(now)
        case (.checking, .checked(.disconnected)): return end(nil)
        case (.checking, .checked(.refused(let failure))): return end(failure)
        case (.inspecting, _): return handleWhileInspecting(event, now)
        case (_, .clientDisconnected): return end(nil)
        case (_, .networkRevoked): return end(Self.revoked)
        case (_, .refused(let failure)), (.fallback, .fallbackFailed(let failure)): return end(failure)
        case (.fallback, .fallbackConnected): return .relay
        case (.fallback, _): return .wait
        default: return handleWhileConnecting(event, now)
        }
    }

    private mutating func inspect(_ now: Instant) -> Action {
        guard let firstByteTimeout else { return select() }
        phase = .inspecting
        deadline = now + firstByteTimeout
        return .inspect
    }

    private mutating func handleWhileInspecting(_ event: Event, _ now: Instant) -> Action {
        switch event {
        case .inspected(.passes): return select()
        case .inspected(.refused(let refusal)):
            (phase, deadline) = (.ended, nil)
            return .reject(refusal)
        case .inspected(.undecided(nil)):
            // The server may speak first. The relay continues the inspection.
            return deadline.map { now >= $0 } == true ? select() : .wait
        case .inspected(.undecided(let end?)):
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
            return wait(.awaitSlot)
        case .slotFree:
            phase = .connecting
            return .connect
        case .queueFull:
            retryTime = now + retryDelay.next()
            return wait(.wait)
        case .connected(true):
            phase = .handshaking
            return wait(.sendRequest)
        case .connected(false), .verified: return .relay
        case .fallbackConnected where isRacing: return .relay
        case .fallbackFailed:
            isRacing = false
            return .wait
        case .notPlanned, .planFailed: return fallBack()
        case .deadlineReached: return handleDeadline(now)
        default: return .wait
        }
    }

    private mutating func handleDeadline(_ now: Instant) -> Action {
        if let connectDeadline, now >= connectDeadline { return fallBack() }
        if let raceStart, now >= raceStart {
            (self.raceStart, isRacing) = (nil, true)
            return wait(.race)
        }
        guard let retryTime, now >= retryTime else { return wait(.wait) }
        self.retryTime = nil
        return wait(phase == .queued ? .awaitSlot : .connect)
    }

    /// Sets the next deadline.
    private mutating func wait(_ action: Action) -> Action {
        deadline = connectDeadline
        if let raceStart { deadline = deadline.map { min($0, raceStart) } }
        if let retryTime { deadline = deadline.map { min($0, retryTime) } }
        return action
    }

    private mutating func fallBack() -> Action {
        phase = .fallback
        deadline = nil
        return isRacing ? .abandonPlan : .startFallback
    }

    private mutating func end(_ failure: DialError?) -> Action {
        phase = .ended
        deadline = nil
        return .end(failure)
    }

    private static let revoked = DialError(.forbidden, "its approval was revoked during the dial")
}
