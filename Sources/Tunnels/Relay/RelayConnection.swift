import Glibc
import Model
import SystemIO

/// The state machine of one relayed connection: a client socket, a target socket, and both directions between them.
///
/// It moves bytes when called and decides when the connection is over. It never waits, does not use epoll, and belongs
/// to one thread.
final class RelayConnection {
    enum Status {
        case open
        /// The end depends on a timeout, or on a state that the kernel does not report. Check again soon.
        case timed
        case over(RelayOutcome.Reason)
    }

    /// The inspection of the client's first bytes. Its state is on the heap, because most connections have passed it.
    private enum Inspection {
        case passed
        /// The client's bytes are held back from the target.
        indirect case pending(RelayInspector)

        var deadline: MonotonicInstant? {
            if case .pending(let inspector) = self { inspector.deadline } else { nil }
        }
    }

    /// The time for a device to receive the last bytes of a client that disconnects without an answer. usbmuxd closes both
    /// directions at once. A device that has sent bytes since has received them.
    private static let deliveryTimeout = Duration.milliseconds(250)

    let observer: any RelayObserver
    /// The permits of the target, released after it is closed.
    let permits: [any Sendable]
    let route: Route?
    /// Distinguishes connections that use the same index, for late events.
    let generation: UInt32
    /// True while the connection is in the event loop's ready list.
    var isQueued = false
    /// True while the event loop has a timer for the connection.
    var hasTimer = false

    private var client: RelaySocket
    private var target: RelaySocket
    private var up: RelayDirection
    private var down: RelayDirection
    private let halfClose: Connection.HalfClose
    private var hasShutDownTarget = false
    private var hasShutDownClient = false
    private var lastMoved: MonotonicInstant
    /// The time of the last byte to the target. `hasAnswered` is true if the target has sent a byte since.
    private var lastUp: MonotonicInstant
    private var hasAnswered = false
    private var disconnectProbe = ClientDisconnectProbe()
    /// Asked of the kernel when they are needed, if the accept has not told them.
    private var addresses: ClientAddresses?
    private var eofClassifier: EOFClassifier
    private var inspection: Inspection
    /// The client was rejected and has received the response; `end` is the deadline for its close.
    private var rejection: (refusal: BrowserGuard.Refusal, end: MonotonicInstant)?

    init(
        client: consuming RelaySocket,
        target: consuming RelaySocket,
        _ new: RelayTarget,
        addresses: ClientAddresses? = nil,
        inspector: RelayInspector?,
        observer: any RelayObserver,
        generation: UInt32,
        now: MonotonicInstant
    ) {
        self.client = client
        self.addresses = addresses
        self.target = target
        halfClose = new.halfClose
        self.observer = observer
        permits = new.permits
        route = new.route
        eofClassifier = EOFClassifier(new.linkCheck)
        self.generation = generation
        up = RelayDirection()
        down = RelayDirection()
        lastMoved = now
        lastUp = now
        inspection = inspector.map { .pending($0) } ?? .passed
    }

    /// Creates a connection that sends the response of a rejection and awaits the client's close. Its target is a closed
    /// socket.
    convenience init(
        rejecting client: consuming RelaySocket,
        _ refusal: BrowserGuard.Refusal,
        drainTimeout: Duration,
        observer: any RelayObserver,
        generation: UInt32,
        now: MonotonicInstant
    ) {
        self.init(
            client: client,
            target: RelaySocket(connected: Descriptor(owning: -1), isTCP: false),
            RelayTarget(number: -1, halfClose: .propagates),
            inspector: nil,
            observer: observer,
            generation: generation,
            now: now
        )
        reject(refusal, until: now + drainTimeout)
    }

    func handleEvents(_ events: UInt32, onClient: Bool) {
        if onClient { client.handleEvents(events) } else { target.handleEvents(events) }
    }

    /// Moves bytes in both directions.
    ///
    /// - Returns: True if more bytes can be moved after the other connections had their turn.
    func pump(through pool: RelayBufferPool, now: MonotonicInstant) -> Bool {
        inspect(pool, now)
        if rejection != nil { return client.discard(into: pool.scratch) }
        let before = (up: up.bytes, down: down.bytes)
        var upward = (moved: 0, hasMore: false)
        if case .passed = inspection { upward = up.pump(from: &client, to: &target, through: pool) }
        let downward = down.pump(from: &target, to: &client, through: pool)
        if upward.moved + downward.moved > 0 {
            lastMoved = now
            if upward.moved > 0 { (lastUp, hasAnswered) = (now, false) }
            if downward.moved > 0 { hasAnswered = true }
            observer.relayed(up: Int(up.bytes - before.up), down: Int(down.bytes - before.down), at: now)
        }
        return upward.hasMore || downward.hasMore
    }

    /// Calls `body` for each socket that became full, once.
    func forEachFullSocket(_ body: (_ number: CInt, _ isTarget: Bool) -> Void) {
        if client.needsWriteReports() { body(client.number, false) }
        if target.needsWriteReports() { body(target.number, true) }
    }

    /// Returns the link check once, when the target has reached EOF. The caller must start it.
    func pendingLinkCheck(now: MonotonicInstant, timeout: Duration) -> LinkCheck? {
        target.isAtEnd ? eofClassifier.begin(until: now + timeout) : nil
    }

    /// Handles the result of the link check.
    func linkChecked(isReachable: Bool) { eofClassifier.linkChecked(isReachable: isReachable) }

    /// Forwards EOF in both directions and decides if the connection is over.
    ///
    /// - Parameters:
    ///   - idle: The idle timeout after the client's EOF, if EOF cannot be forwarded to the device.
    ///   - owners: Tells if the client's socket is still open.
    ///   - now: The time of this loop iteration.
    /// - Returns: `timed` if only a later call can decide.
    func checkCompletion(idle: Duration, owners: SocketOwnerLookup, now: MonotonicInstant) -> Status {
        if let rejection {
            return client.isAtEnd || now >= rejection.end ? .over(.refused(rejection.refusal)) : .timed
        }
        // Most calls find two open sides.
        let isOpen = !up.isEnded && !down.isEnded && client.errorCode == nil
        let status = isOpen ? .open : checkStreams(idle: idle, owners: owners, now: now)
        if case .open = status, inspection.deadline != nil { return .timed }
        return status
    }

    private func checkStreams(idle: Duration, owners: SocketOwnerLookup, now: MonotonicInstant) -> Status {
        if up.isEnded, !hasShutDownTarget, client.errorCode == nil, halfClose == .propagates, !target.isBroken {
            hasShutDownTarget = true
            target.shutdownWrite()
        }
        let eof = eofClassifier.result(now: now)
        if down.isEnded, !hasShutDownClient, target.errorCode == nil, !client.isBroken, eof == .closed {
            hasShutDownClient = true
            client.shutdownWrite()
        }
        let isQuiet = now - lastMoved >= idle
        // The remaining bytes of a failed client are still delivered, but only until the idle timeout.
        if client.errorCode != nil, isQuiet { return .over(reason) }
        if down.isEnded {
            // For a failed client, the result of the link check makes no difference.
            return eof == .pending && client.errorCode == nil ? .timed : checkAfterTargetEnd(eof)
        }
        guard up.isEnded, !target.isBroken else { return client.errorCode == nil ? .open : .timed }
        if client.isAtEnd, isClientGone(owners, now) {
            // The client has disconnected. Its bytes are still delivered; the target's bytes are read and discarded.
            down.discards = true
            // Bytes from the device do not extend the timeout. Otherwise a device that keeps sending would hold the
            // connection open.
            let mustWait =
                client.errorCode == nil && halfClose == .destroys && !hasAnswered
                && now - lastUp < min(idle, Self.deliveryTimeout)
            return target.isFlushed && !mustWait ? .over(reason) : .timed
        }
        guard halfClose == .destroys else { return .open }
        // A stalled client or device is not idle: no bytes may be pending on either side.
        return isQuiet && down.isEmpty && client.isFlushed && target.isFlushed ? .over(.drained) : .timed
    }

    private func isClientGone(_ owners: SocketOwnerLookup, _ now: MonotonicInstant) -> Bool {
        if client.isHungUp || client.errorCode != nil { return true }
        guard halfClose == .destroys, client.isTCP else { return false }
        if addresses == nil { addresses = Self.addresses(of: client.number) }
        return disconnectProbe.isGone(addresses, owners: owners, now: now)
    }

    private static func addresses(of client: CInt) -> ClientAddresses? {
        guard let peer = SocketAddress.peer(of: client), let local = SocketAddress.local(of: client) else { return nil }
        return (peer, local)
    }

    /// Prepares the close of both sockets, with RST for the peer of a failed socket. The sockets close with this
    /// object.
    func finish(_ reason: RelayOutcome.Reason) -> RelayOutcome {
        switch reason {
        case .finished, .drained: break
        case .refused: target.makeAbortive()
        case .clientFailed: target.makeAbortive()
        case .targetFailed, .linkLost: client.makeAbortive()
        case .aborted:
            client.makeAbortive()
            target.makeAbortive()
        }
        return RelayOutcome(reason: reason, bytesUp: up.bytes, bytesDown: down.bytes)
    }

    /// Inspects the client's first bytes and applies the decision.
    private func inspect(_ pool: RelayBufferPool, _ now: MonotonicInstant) {
        guard case .pending(var inspector) = inspection else { return }
        if target.isReadable, down.bytes == 0, down.isEmpty {
            let buffer = UnsafeMutableRawBufferPointer(rebasing: pool.scratch[..<5])
            let count = target.peek(into: buffer)
            if count > 0, RelayInspector.isNotHTTP(UnsafeRawBufferPointer(rebasing: buffer[..<count])) {
                inspection = .passed
                return
            }
        }
        guard client.isReadable else { return }
        switch inspector.inspect(&client, pool: pool, now: now) {
        case .undecided: inspection = .pending(inspector)
        case .passes: inspection = .passed
        case .refused(let refusal):
            inspection = .passed
            reject(refusal, until: now + inspector.drainTimeout)
        }
    }

    /// Sends the response of a rejection. It fits into the send buffer, which a client without a request leaves empty.
    private func reject(_ refusal: BrowserGuard.Refusal, until end: MonotonicInstant) {
        rejection = (refusal, end)
        _ = refusal.response.withUnsafeBytes { client.send($0) }
        client.shutdownWrite()
    }

    /// Checks for completion after the target's EOF, or after the client stopped accepting bytes.
    private func checkAfterTargetEnd(_ eof: EOFClassifier.Result) -> Status {
        let isTargetGone = target.isAtEnd && (halfClose == .destroys || target.isHungUp || target.errorCode != nil)
        guard up.isEnded || isTargetGone else { return client.errorCode == nil ? .open : .timed }
        guard client.isFlushed, isTargetGone || target.isFlushed else { return .timed }
        return .over(eof == .linkLost ? .linkLost : reason)
    }

    private var reason: RelayOutcome.Reason {
        if let code = target.errorCode { return .targetFailed(code) }
        if let code = client.errorCode { return .clientFailed(code) }
        return up.hasLoss || !up.isEmpty ? .targetFailed(EPIPE) : .finished
    }
}
