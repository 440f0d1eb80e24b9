import Glibc
import SystemIO

/// A client and a carrier that were made one stream: what has been said on each side, and what follows from it.
///
/// It moves bytes when it is told to and decides when it is over; it never waits and knows no epoll. Used by one thread.
final class RelayConnection {
    enum Verdict {
        case open
        /// Whether it is over depends on time, or on something that the kernel does not report: ask again soon.
        case timed
        case over(RelayOutcome.Reason)
    }

    /// How long a device has to take in what a client sent that is gone; usbmuxd ends both directions with the stream.
    /// One that has answered since has taken it in, as far as can be seen.
    private static let delivery = (silent: Duration.milliseconds(250), answered: Duration.milliseconds(20))

    let observer: any RelayObserver
    /// What the carrier's giver counts by; let go of after the carrier is closed.
    let lease: (any Sendable)?
    /// Tells it from another connection in the same place, for events that come too late.
    let generation: UInt32
    /// Whether it stands in the list of those that have more to move.
    var isQueued = false
    /// Whether it is looked at again by the clock.
    var awaitsLook = false

    private var client: RelaySocket
    private var carrier: RelaySocket
    private var up: RelayDirection
    private var down: RelayDirection
    private let halfClose: Connection.HalfClose
    private var hasToldCarrier = false
    private var hasToldClient = false
    private var lastMoved: ContinuousClock.Instant
    /// When a byte last went to the carrier, and whether one has come back since.
    private var lastUp: ContinuousClock.Instant
    private var hasAnswered = false
    private var departure = ClientDisconnectProbe()
    private var hearing: EOFClassifier
    /// While it is there, the client's bytes are kept from the carrier.
    private var screen: RelayInspector?
    /// The client was refused and told so; until when it may take its time to close.
    private var farewell: (refusal: BrowserGuard.Refusal, end: ContinuousClock.Instant)?

    init(
        _ adoption: RelayCommandQueue.Adoption,
        generation: UInt32,
        space: RelayBufferPool,
        now: ContinuousClock.Instant
    ) {
        client = RelaySocket(Descriptor(owning: adoption.client))
        carrier = RelaySocket(Descriptor(owning: adoption.carrier))
        halfClose = adoption.halfClose
        observer = adoption.observer
        lease = adoption.lease
        hearing = EOFClassifier(of: adoption.witness)
        self.generation = generation
        up = RelayDirection(in: space)
        down = RelayDirection(early: adoption.early, in: space)
        lastMoved = now
        lastUp = now
        let speaksFirst = adoption.early.withUnsafeBytes { !$0.isEmpty && RelayInspector.isOther($0) }
        screen = speaksFirst ? nil : adoption.screen
    }

    /// The two descriptors, for epoll.
    var numbers: (client: CInt, carrier: CInt) { (client.number, carrier.number) }

    func note(_ events: UInt32, onClient: Bool) {
        if onClient { client.note(events) } else { carrier.note(events) }
    }

    /// Moves what can be moved, both ways.
    ///
    /// - Returns: Whether more could be moved once the others have had their turn.
    func pump(through space: RelayBufferPool, now: ContinuousClock.Instant) -> Bool {
        if screen != nil { look(space, now) }
        if farewell != nil { return client.discard(into: space.scratch) }
        let before = (up: up.bytes, down: down.bytes)
        let upward =
            screen == nil ? up.pump(from: &client, to: &carrier, through: space) : (moved: 0, hasMore: false)
        let downward = down.pump(from: &carrier, to: &client, through: space)
        if upward.moved + downward.moved > 0 {
            lastMoved = now
            if upward.moved > 0 { (lastUp, hasAnswered) = (now, false) }
            if downward.moved > 0 { hasAnswered = true }
            observer.relayed(up: Int(up.bytes - before.up), down: Int(down.bytes - before.down))
        }
        return upward.hasMore || downward.hasMore
    }

    /// Whom to ask about the carrier's end, once there is one: he is to be asked at this moment.
    func summons(now: ContinuousClock.Instant) -> (any LinkChecker)? {
        carrier.isAtEnd ? hearing.begin(now: now) : nil
    }

    /// What the witness says.
    func hear(_ isWayThere: Bool) { hearing.close(isWayThere) }

    /// Passes the ends of both directions on, and says whether the connection is over.
    ///
    /// - Parameters:
    ///   - idle: How long the device may be silent after the client's end, where it cannot be told about it.
    ///   - owners: Knows whether a client is still there.
    ///   - now: The time of this round.
    /// - Returns: `timed` where nothing will tell but a later call.
    func settle(idle: Duration, owners: SocketOwnerLookup, now: ContinuousClock.Instant) -> Verdict {
        if let farewell {
            return client.isAtEnd || now >= farewell.end ? .over(.refused(farewell.refusal)) : .timed
        }
        let verdict = settleStreams(idle, owners, now)
        if case .open = verdict, screen?.isTimed == true { return .timed }
        return verdict
    }

    private func settleStreams(_ idle: Duration, _ owners: SocketOwnerLookup, _ now: ContinuousClock.Instant) -> Verdict
    {
        if up.isEnded, !hasToldCarrier, client.fault == nil, halfClose == .propagates, !carrier.isBroken {
            hasToldCarrier = true
            carrier.finish()
        }
        let verdict = hearing.verdict(now: now)
        if down.isEnded, !hasToldClient, carrier.fault == nil, !client.isBroken, verdict == .closed {
            hasToldClient = true
            client.finish()
        }
        let isQuiet = now - lastMoved >= idle
        // A client that broke off is owed what can still be delivered, and no waiting without bound.
        if client.fault != nil, isQuiet { return .over(reason) }
        if down.isEnded {
            // Nobody waits for an answer that makes no difference any more.
            return verdict == .pending && client.fault == nil ? .timed : settleAfterTarget(verdict)
        }
        guard up.isEnded, !carrier.isBroken else { return client.fault == nil ? .open : .timed }
        if client.isAtEnd, isClientGone(owners, now) {
            // The client is gone, not only silent. What it sent is still delivered, the answer is read away.
            down.discards = true
            // What the device says is no reason to wait: one that talks on would be held for ever.
            let delivery = min(idle, hasAnswered ? Self.delivery.answered : Self.delivery.silent)
            let isWaitedFor = client.fault == nil && halfClose == .destroys && now - lastUp < delivery
            return carrier.isFlushed && !isWaitedFor ? .over(reason) : .timed
        }
        guard halfClose == .destroys else { return .open }
        // A stalled client or a stalled device is not a silent one: nothing may wait on either side.
        return isQuiet && down.isEmpty && client.isFlushed && carrier.isFlushed ? .over(.drained) : .timed
    }

    private func isClientGone(_ owners: SocketOwnerLookup, _ now: ContinuousClock.Instant) -> Bool {
        if client.isHungUp || client.fault != nil { return true }
        guard halfClose == .destroys, client.isTCP else { return false }
        return departure.isCertain(of: client.number, asking: owners, now: now)
    }

    /// Prepares the close of both sides: one whose counterpart failed sees a failure. They close with this object.
    func conclude(_ reason: RelayOutcome.Reason) -> RelayOutcome {
        switch reason {
        case .finished, .drained: break
        case .refused: carrier.makeAbortive()
        case .brokenByClient: carrier.makeAbortive()
        case .brokenByTarget, .severed: client.makeAbortive()
        case .cut:
            client.makeAbortive()
            carrier.makeAbortive()
        }
        return RelayOutcome(reason: reason, bytesUp: up.bytes, bytesDown: down.bytes)
    }

    /// Asks the screen about what the client has sent, and does as it says.
    private func look(_ space: RelayBufferPool, _ now: ContinuousClock.Instant) {
        if carrier.isReadable, down.bytes == 0, down.isEmpty {
            let room = UnsafeMutableRawBufferPointer(rebasing: space.scratch[..<5])
            let count = carrier.peek(into: room)
            if count > 0, RelayInspector.isOther(UnsafeRawBufferPointer(rebasing: room[..<count])) { screen = nil }
        }
        guard client.isReadable, var screen else { return }
        switch screen.look(at: client, space: space, now: now) {
        case .undecided: self.screen = screen
        case .passes: self.screen = nil
        case .refused(let refusal):
            self.screen = nil
            farewell = (refusal, now + screen.farewell)
            _ = ForbiddenResponse.response(to: refusal).withUnsafeBytes { client.send($0) }
            client.finish()
        }
    }

    /// The target has nothing more for the client, or the client takes nothing more.
    private func settleAfterTarget(_ verdict: EOFClassifier.Verdict) -> Verdict {
        let isCarrierGone = carrier.isAtEnd && (halfClose == .destroys || carrier.isHungUp || carrier.fault != nil)
        guard up.isEnded || isCarrierGone else { return client.fault == nil ? .open : .timed }
        guard client.isFlushed, isCarrierGone || carrier.isFlushed else { return .timed }
        return .over(verdict == .severed ? .severed : reason)
    }

    private var reason: RelayOutcome.Reason {
        if let code = carrier.fault { return .brokenByTarget(code) }
        if let code = client.fault { return .brokenByClient(code) }
        return up.hasLoss || !up.isEmpty ? .brokenByTarget(EPIPE) : .finished
    }
}
