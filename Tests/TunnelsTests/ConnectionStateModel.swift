import Model
import SystemIO

@testable import Tunnels

/// A connection before its handover, with what client, network and connector may do next. Time passes to deadlines only.
struct ConnectionStateModel {
    /// An event that may come, and the time at which it comes.
    typealias Choice = (event: ConnectionState.Event, now: MonotonicInstant)

    private static let failure = DialError(.failed, "no")
    private static let requestTime = Duration.seconds(5)

    private var state: ConnectionState
    private var now: MonotonicInstant
    /// True if the machine awaits the result of its last action, which makes no pause.
    private var isInspecting = false
    private var isSelecting = false
    private var isChecking = false
    /// True if the last action may find no permit, or a full accept queue.
    private var canBeFull = false
    private var isQueued = false
    private var hasSlot = false
    private var isConnecting = false
    private var isHandshaking = false
    private var hasFallback = false
    private var hasRaced = false
    private var inspectionEnd: MonotonicInstant?
    private(set) var isOver = false
    /// True if the relay has the connection, and the machine gets no more events.
    private var isRelayed = false

    init(inspects: Bool, start: MonotonicInstant) {
        state = ConnectionState(firstByteTimeout: inspects ? .milliseconds(20) : nil)
        now = start
        isChecking = state.handle(.accepted, now: start) == .checkClient
    }

    /// What may come next, if every part outside of the machine does anything that it may do.
    var choices: [Choice] {
        if isRelayed { return [] }
        if let results { return results.map { ($0, now) } }
        var events: [ConnectionState.Event] = [.clientDisconnected, .clientReadable]
        if canBeFull { events.append(.queueFull) }
        if isQueued { events.append(.slotFree) }
        if isConnecting { events += [.connected(hasHandshake: false), .connected(hasHandshake: true), .planFailed] }
        if isHandshaking { events += [.verified, .planFailed] }
        if hasFallback { events += [.fallbackConnected, .fallbackFailed(Self.failure), .networkRevoked] }
        return events.map { ($0, now) } + (state.deadline.map { [(.deadlineReached, max(now, $0))] } ?? [])
    }

    /// The event that comes although client and network stay silent for ever; nil if the machine is forgotten.
    var certainChoice: Choice? {
        if let result = results?.last { return (result, now) }
        if let deadline = state.deadline { return (.deadlineReached, max(now, deadline)) }
        // The fallback has timeouts of its own, so it ends.
        return hasFallback ? (.fallbackFailed(Self.failure), now) : nil
    }

    /// The possible results of an action that makes no pause.
    private var results: [ConnectionState.Event]? {
        if isChecking { return [.checked(.passes), .checked(.disconnected), .checked(.refused(Self.failure))] }
        if isSelecting {
            return [.notPlanned, .refused(Self.failure)]
                + [true, false].map { .planned(timeout: .seconds(1), hasOtherRoutes: $0) }
        }
        guard isInspecting else { return nil }
        let decided: [ConnectionState.Event] = [.inspected(.refused(.origin)), .inspected(.passes)]
        guard let inspectionEnd else {
            let undecided = [nil, now + Self.requestTime].map { ConnectionState.Event.inspected(.undecided(until: $0)) }
            return decided + undecided
        }
        return decided + (now < inspectionEnd ? [.inspected(.undecided(until: inspectionEnd))] : [])
    }

    /// Handles a choice.
    ///
    /// - Returns: The promise that the machine breaks; otherwise nil.
    mutating func handle(_ choice: Choice) -> String? {
        now = choice.now
        if case .inspected(.undecided(let end?)) = choice.event { inspectionEnd = end }
        (isChecking, isInspecting, isSelecting, canBeFull) = (false, false, false, false)
        var hasTarget = false
        switch choice.event {
        case .slotFree: (isQueued, hasSlot) = (false, true)
        case .connected(let hasHandshake): (isConnecting, hasTarget) = (false, !hasHandshake)
        case .verified: (isHandshaking, hasTarget) = (false, true)
        case .planFailed: (isConnecting, isHandshaking) = (false, false)
        case .queueFull: (isConnecting, isQueued) = (false, false)
        case .fallbackConnected: (hasFallback, hasTarget) = (false, true)
        case .fallbackFailed, .networkRevoked: hasFallback = false
        default: break
        }
        let action = state.handle(choice.event, now: now)
        if isOver { return action == .wait ? nil : "nothing happens after the end" }
        return perform(action, hasTarget: hasTarget)
    }

    /// Lets everything that is still outstanding come after the end.
    func promiseBrokenAfterEnd() -> String? {
        guard isOver else { return nil }
        for choice in choices {
            var late = self
            if let promise = late.handle(choice) { return promise }
        }
        return nil
    }

    private mutating func perform(_ action: ConnectionState.Action, hasTarget: Bool) -> String? {
        switch action {
        case .wait: return hasTarget ? "a connected target is used" : nil
        case .checkClient: return "the user is looked up once"
        case .inspect: isInspecting = true
        case .selectPlan: isSelecting = true
        case .awaitSlot:
            guard !isQueued, !hasSlot else { return "a connection waits for one slot" }
            (isQueued, canBeFull) = (true, true)
        case .connect:
            guard hasSlot, !isConnecting, !isHandshaking else { return "a connect has a slot, and is the only one" }
            (isConnecting, canBeFull) = (true, true)
        case .sendRequest:
            guard !isConnecting, !isHandshaking else { return "the request is sent once, to a connected target" }
            isHandshaking = true
        case .race, .startFallback:
            guard !hasFallback, action != .race || !hasRaced else { return "one fallback runs at a time" }
            hasFallback = true
            hasRaced = hasRaced || action == .race
            if action == .startFallback { abandonPlan() }
        case .abandonPlan:
            guard hasFallback else { return "a plan is abandoned for a fallback" }
            abandonPlan()
        case .relay:
            guard hasTarget else { return "the relay gets a connected target" }
            (isOver, isRelayed) = (true, true)
        case .reject, .end: isOver = true
        }
        return nil
    }

    private mutating func abandonPlan() {
        (isQueued, hasSlot, isConnecting, isHandshaking) = (false, false, false, false)
    }
}
