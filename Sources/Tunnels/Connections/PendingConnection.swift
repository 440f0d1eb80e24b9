import CLinux
import Glibc
import Model
import SystemIO

/// A connection that is not relayed yet: its sockets, and the system calls of its state machine. Belongs to the loop's
/// thread.
final class PendingConnection {
    let handle: ConnectionHandle
    /// Nil for a connect request.
    let acceptor: Acceptor?
    /// Nil for an accepted client.
    let request: ConnectRequest?
    var state: ConnectionState
    var client: RelaySocket?
    var target: RelaySocket?
    /// Nil after the inspection.
    var inspector: RelayInspector?
    var plan: ConnectPlan?
    var permit: (any Sendable)?
    var slot: ConnectQueue.Slot?
    /// The time at which the slot of the server is released.
    var slotRelease: MonotonicInstant?
    var fallback: FallbackRequest?
    /// The index of the handshake's request that was sent last.
    private var requestIndex = 0
    /// The reason why the plan failed; nil before that, and after its timeout.
    private(set) var failure: ConnectPlan.AttemptFailure?
    /// The target whose plan was selected; nil before that.
    private var selectedTarget: TargetSnapshot?
    /// The routes that were revoked since the connection began to connect.
    private var revoked: [RevokedRoutes] = []
    /// The deadline of the timer in the loop's heap; nil if there is none.
    var timer: MonotonicInstant?
    var connectStart: MonotonicInstant

    /// Nil for a unix socket, and without a client.
    let addresses: ClientAddresses?

    init(
        _ client: consuming Descriptor,
        peer: SocketAddress?,
        on acceptor: Acceptor,
        handle: ConnectionHandle,
        now: MonotonicInstant
    ) {
        self.handle = handle
        self.acceptor = acceptor
        request = nil
        connectStart = now
        let listener = acceptor.tunnel.listener
        let inspects = listener.inspects(on: acceptor.socket.address)
        let limits = listener.limits.inspection
        state = ConnectionState(firstByteTimeout: inspects ? limits.firstByte : nil)
        let address = acceptor.socket.address
        // A socket that listens on every address does not tell which one the client connected to.
        let local = address.isUnspecified ? SocketAddress.local(of: client.number) : address
        addresses = peer.flatMap { peer in local.map { (client: peer, local: $0) } }
        if inspects { inspector = RelayInspector(BrowserGuard(address: local), limits: limits) }
        self.client = RelaySocket(connected: client, isTCP: acceptor.socket.address.port != nil)
    }

    /// Creates a connection without a client.
    init(_ request: ConnectRequest, handle: ConnectionHandle, now: MonotonicInstant) {
        self.handle = handle
        self.request = request
        (acceptor, addresses) = (nil, nil)
        plan = request.plan
        connectStart = now
        state = ConnectionState(firstByteTimeout: nil)
    }

    /// Prevents the handover over these routes. A connection that has not selected a route yet will not select one of them.
    func revoke(_ routes: RevokedRoutes) {
        if plan != nil || fallback != nil { revoked.append(routes) }
    }

    /// True if the route was revoked since the connection began to connect.
    func isRevoked(_ route: Route?) -> Bool {
        guard route?.isNetwork == true else { return false }
        // A result of the fallback has no snapshot: its plans were made after the approval was read.
        return revoked.contains { $0.contains(route) } || plan != nil && selectedTarget?.isCurrent() == false
    }

    /// Nil for a connect request.
    var tunnel: LoopTunnel? { acceptor?.tunnel }

    /// The next time at which the connection needs a timer.
    var deadline: MonotonicInstant? {
        guard let slotRelease, slot?.includesServer == true else { return state.deadline }
        return state.deadline.map { min($0, slotRelease) } ?? slotRelease
    }

    func checkClient() -> ClientOwnerCheck.Decision {
        guard let acceptor, let number = client?.number else { return .passes }
        let listener = acceptor.tunnel.listener
        guard listener.checksOwner(on: acceptor.socket.address) else { return .passes }
        if acceptor.socket.address.port == nil {
            return ClientOwnerCheck.evaluate(user: SocketOption.peerUser(of: number), owner: listener.owner)
        }
        guard let addresses else { return .disconnected }
        return listener.ownerCheck.evaluate(number, from: addresses.client, to: addresses.local, owner: listener.owner)
    }

    func inspect(_ pool: RelayBufferPool, _ now: MonotonicInstant) -> RelayInspector.Decision {
        guard var client = client.take() else { return .passes }
        let decision = inspector?.inspect(&client, pool: pool, now: now) ?? .passes
        self.client = consume client
        if case .undecided = decision { return decision }
        inspector = nil
        return decision
    }

    /// Handles readiness of the client's socket.
    func handleClient(_ events: UInt32) -> ConnectionState.Event? {
        client?.handleEvents(events)
        guard let number = client?.number else { return nil }
        if client?.isHungUp == true || client?.errorCode != nil {
            // Bytes that the client sent before its close still have to be delivered.
            var byte: UInt8 = 0
            if recv(number, &byte, 1, CInt(MSG_PEEK)) <= 0 { return .clientDisconnected }
        }
        return .clientReadable
    }

    /// Returns the connected target of a plan, with its permits. The result owns the descriptor only if `target` was
    /// released.
    func connectedTarget(_ number: CInt, of plan: ConnectPlan) -> RelayTarget {
        var target = RelayTarget(number: number, halfClose: plan.halfClose)
        target.add(plan, permit)
        return target
    }

    /// Gives up what an attempt by plan holds, before the fallback.
    func abandonPlan() {
        plan = nil
        target = nil
        permit = nil
    }
}

/// The connector's plan and its slot.
extension PendingConnection {
    /// Takes the plan of the target, if it still holds.
    func selectPlan() -> ConnectionState.Event {
        if let plan = request?.plan { return .planned(timeout: plan.timeout, hasOtherRoutes: false) }
        guard let target = tunnel?.target, let plan = target.plans.first, case .socket = plan.method, target.isCurrent()
        else { return .notPlanned }
        if let refusal = target.refusal() { return .refused(refusal) }
        (self.plan, selectedTarget) = (plan, target)
        return .planned(timeout: plan.timeout, hasOtherRoutes: plan.usesNetwork && target.plans.count > 1)
    }

    /// Takes a permit and a slot, or waits for one of them. A connection without a permit takes no slot from others.
    func enter(_ queue: inout ConnectQueue, _ now: MonotonicInstant) -> ConnectionState.Event? {
        if permit == nil, let acquirePermit = plan?.acquirePermit {
            permit = acquirePermit()
            failure = permit == nil ? .noPermit : nil
            if permit == nil { return .queueFull }
        }
        guard let key = plan?.limitKey else { return .slotFree }
        guard let slot = queue.enter(handle, key) else { return nil }
        take(slot, now)
        return .slotFree
    }

    func take(_ slot: ConnectQueue.Slot, _ now: MonotonicInstant) {
        self.slot = slot
        slotRelease = now + ConnectQueue.serverSlotTime
    }

    /// Releases the slot of the server when its time is over.
    func releaseServer(_ queue: inout ConnectQueue, _ now: MonotonicInstant) {
        guard let slotRelease, now >= slotRelease, var slot = slot.take() else { return }
        queue.releaseServer(&slot)
        (self.slot, self.slotRelease) = (slot, nil)
    }

    /// Releases the slot, or ends the wait for one.
    func leave(_ queue: inout ConnectQueue) {
        guard plan?.limitKey != nil else { return }
        slotRelease = nil
        if let slot = slot.take() { queue.release(slot) } else { queue.leave(handle) }
    }
}

/// The connector's system calls.
extension PendingConnection {
    /// Starts to connect to the address of the plan.
    ///
    /// - Parameter watch: Registers a socket with epoll; false if the kernel watches no more descriptors.
    /// - Returns: Nil if the connect goes on in the background.
    func connect(watch: (_ number: CInt, _ isConnecting: Bool) -> Bool) -> ConnectionState.Event? {
        guard let plan, case .socket(let address, _) = plan.method else { return failed(.closed) }
        guard plan.isAllowed?() != false else { return failed(.forbidden) }
        requestIndex = 0
        guard let socket = try? address.makeSocket() else { return failed(.system(errno)) }
        let number = socket.number
        guard let code = try? address.startConnect(number) else { return failed(.system(EINVAL)) }
        guard code == 0 || code == EINPROGRESS else { return code == EAGAIN ? .queueFull : failed(.system(code)) }
        let isTCP = address.port != nil
        if isTCP { RelaySocket.setOptions(number) }
        target = RelaySocket(connected: socket, isTCP: isTCP, isConnecting: code != 0)
        guard watch(number, code != 0) else { return failed(.system(errno)) }
        return code == 0 ? connected() : nil
    }

    /// Handles readiness of the target's socket.
    func handleTarget(_ events: UInt32, _ pool: RelayBufferPool) -> ConnectionState.Event? {
        target?.handleEvents(events)
        switch state.phase {
        case .connecting:
            if let code = target?.errorCode { return failed(.system(code)) }
            if target?.isHungUp == true { return failed(.closed) }
            return target?.isWritable == true ? connected() : nil
        case .handshaking: return readReply(pool)
        default: return nil
        }
    }

    private func connected() -> ConnectionState.Event {
        guard let plan, case .socket(let address, let handshake) = plan.method, let number = target?.number else {
            return failed(.closed)
        }
        guard handshake == nil else { return .connected(hasHandshake: true) }
        if address.port != nil, SocketAddress.isSelfConnected(number) { return failed(.system(ECONNREFUSED)) }
        // A listener of this process may have opened since the first check.
        return plan.isAllowed?() == false ? failed(.forbidden) : .connected(hasHandshake: false)
    }

    private func failed(_ failure: ConnectPlan.AttemptFailure) -> ConnectionState.Event {
        self.failure = failure
        return .planFailed
    }

    private var handshake: ConnectPlan.Handshake? {
        guard case .socket(_, let handshake) = plan?.method else { return nil }
        return handshake
    }

    /// Sends a request of the handshake. It fits into the send buffer of a new socket.
    func sendRequest() -> ConnectionState.Event? {
        let sent = handshake?.requests[requestIndex].withUnsafeBytes { target?.send($0) == $0.count }
        return sent == true ? nil : failed(.closed)
    }

    /// Reads a reply of the handshake. The target's bytes after the last one stay in the socket.
    private func readReply(_ pool: RelayBufferPool) -> ConnectionState.Event? {
        guard let handshake, let number = target?.number else { return failed(.closed) }
        let count = target?.peek(into: pool.scratch) ?? 0
        guard count > 0 else { return count < 0 && (errno == EAGAIN || errno == EINTR) ? nil : failed(.closed) }
        switch handshake.evaluate(UnsafeRawBufferPointer(rebasing: pool.scratch[..<count])) {
        case .incomplete: return target?.isEnding == true ? failed(.closed) : nil
        case .failed(let failure): return failed(failure)
        case .accepted(let length):
            _ = target?.receive(into: UnsafeMutableRawBufferPointer(rebasing: pool.scratch[..<length]))
            guard requestIndex + 1 == handshake.requests.count else {
                requestIndex += 1
                return sendRequest()
            }
            return handshake.verify(number) ? .verified : failed(.closed)
        }
    }
}
