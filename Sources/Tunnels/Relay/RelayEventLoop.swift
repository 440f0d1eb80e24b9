import CLinux
import Glibc
import SystemIO

/// The relay's thread: an edge-triggered epoll over both ends of every connection.
///
/// Everything here belongs to the one thread that runs it.
final class RelayEventLoop {
    /// The inbox's place in epoll; connections have `generation << 32 | index << 1 | side`.
    private static let wakeToken = UInt64.max

    private let inbox: RelayCommandQueue
    private let idle: Duration
    private let space = RelayBufferPool()
    private let owners = SocketOwnerLookup()
    private let epoll: Descriptor
    private var connections: [RelayConnection?] = []
    private var vacant: [Int] = []
    private var nextGeneration: UInt32 = 0
    /// Those that had more to move than their share.
    private var ready: [Int] = []
    /// Those whose end depends on time.
    private var looks = RelayTimerQueue()
    private var stopped: [CheckedContinuation<Void, Never>] = []

    init(_ inbox: RelayCommandQueue, idle: Duration) {
        self.inbox = inbox
        self.idle = idle
        let number = epoll_create1(CInt(EPOLL_CLOEXEC))
        precondition(number >= 0, "epoll_create1 failed: errno \(errno)")
        epoll = Descriptor(owning: number)
        watch(inbox.wake.number, EPOLLIN.rawValue, Self.wakeToken)
    }

    /// Runs until an order says stop.
    func run() {
        blockSIGPIPE()
        let events = UnsafeMutableBufferPointer<epoll_event>.allocate(capacity: 256)
        defer { events.deallocate() }
        while stopped.isEmpty {
            let count = epoll_wait(epoll.number, events.baseAddress, CInt(events.count), patience)
            let now = ContinuousClock.now
            var hasOrders = false
            for event in events.prefix(Int(max(count, 0))) {
                if event.data.u64 == Self.wakeToken { hasOrders = true } else { take(event, now) }
            }
            // First, so that a cut waits for no turn of the busy ones.
            if hasOrders { obey(inbox.take(), now) }
            let turn = ready
            ready = []
            for index in turn {
                serve(index, now)
                // Nor for the rest of one that has begun: each of many may move a whole share.
                if inbox.isWaiting { obey(inbox.take(), now) }
            }
            while let look = looks.takeDue(by: now) { take(look, now) }
        }
        let now = ContinuousClock.now
        obey(inbox.close(), now)
        for index in connections.indices { end(index, .cut) }
        for continuation in stopped { continuation.resume() }
    }

    /// splice(2) to a socket whose other side is gone raises it, and has no flag against that as send(2) has. It is sent to
    /// the thread that wrote (signal(7)).
    private func blockSIGPIPE() {
        var signals = sigset_t()
        sigemptyset(&signals)
        sigaddset(&signals, SIGPIPE)
        pthread_sigmask(SIG_BLOCK, &signals, nil)
    }

    /// How long one whose end depends on time is left alone.
    private var interval: Duration { min(idle / 4, .milliseconds(25)) }

    /// What epoll_wait(2) may wait, in milliseconds.
    private var patience: CInt {
        guard ready.isEmpty else { return 0 }
        guard let next = looks.next else { return -1 }
        let (seconds, attoseconds) = (next - .now).components
        return CInt(max(0, seconds * 1_000 + attoseconds / 1_000_000_000_000_000 + 1))
    }

    private func obey(_ orders: consuming [RelayCommandQueue.Order], _ now: ContinuousClock.Instant) {
        // Each is let go before the next: an adoption's lease must not outlive a cut that came in the same batch.
        orders.reverse()
        while let order = orders.popLast() { obey(order, now) }
    }

    private func obey(_ order: RelayCommandQueue.Order, _ now: ContinuousClock.Instant) {
        switch order {
        case .adopt(let adoption):
            let index = place(adoption, now)
            if let code = watchBoth(index) { end(index, .brokenByTarget(code)) }
        case .hear(let token, let isWayThere):
            let index = Int(token & 0xFFFF_FFFF)
            guard let connection = connections[index], connection.generation == UInt32(token >> 32) else { return }
            connection.hear(isWayThere)
            serve(index, now)
        case .cut(let groups, let continuation):
            for index in connections.indices where belongs(index, to: groups) { end(index, .cut) }
            continuation.resume()
        case .stop(let continuation):
            stopped.append(continuation)
        }
    }

    private func place(_ adoption: RelayCommandQueue.Adoption, _ now: ContinuousClock.Instant) -> Int {
        nextGeneration &+= 1
        let connection = RelayConnection(adoption, generation: nextGeneration, space: space, now: now)
        guard let index = vacant.popLast() else {
            connections.append(connection)
            return connections.count - 1
        }
        connections[index] = connection
        return index
    }

    /// - Returns: The errno when the kernel watches no more descriptors.
    private func watchBoth(_ index: Int) -> CInt? {
        guard let connection = connections[index] else { return nil }
        let (client, carrier) = connection.numbers
        let token = UInt64(connection.generation) << 32 | UInt64(index) << 1
        // What is readable or writable already is reported as an edge too (epoll(7)).
        let isWatched =
            watch(client, RelaySocket.interest, token) && watch(carrier, RelaySocket.interest, token | 1)
        return isWatched ? nil : errno
    }

    @discardableResult
    private func watch(_ number: CInt, _ interest: UInt32, _ token: UInt64) -> Bool {
        var event = epoll_event()
        event.events = interest
        event.data.u64 = token
        return epoll_ctl(epoll.number, EPOLL_CTL_ADD, number, &event) == 0
    }

    private func take(_ event: epoll_event, _ now: ContinuousClock.Instant) {
        let token = event.data.u64
        let index = Int(token >> 1 & 0x7FFF_FFFF)
        // The place may have been left, or taken by a later connection, in this very batch.
        guard let connection = connections[index], connection.generation == UInt32(token >> 32) else { return }
        connection.note(event.events, onClient: token & 1 == 0)
        // Its turn comes with the ready list, where both of its ends are taken in one go.
        queue(connection, index)
    }

    private func take(_ look: RelayTimerQueue.Look, _ now: ContinuousClock.Instant) {
        guard let connection = connections[look.index], connection.generation == look.generation else { return }
        connection.awaitsLook = false
        serve(look.index, now)
    }

    private func queue(_ connection: RelayConnection, _ index: Int) {
        guard !connection.isQueued else { return }
        connection.isQueued = true
        ready.append(index)
    }

    private func serve(_ index: Int, _ now: ContinuousClock.Instant) {
        if let reason = advance(index, now) { end(index, reason) }
    }

    /// - Returns: Why the connection is over; nil while it is not.
    private func advance(_ index: Int, _ now: ContinuousClock.Instant) -> RelayOutcome.Reason? {
        guard let connection = connections[index] else { return nil }
        connection.isQueued = false
        if connection.pump(through: space, now: now) { queue(connection, index) }
        if let witness = connection.summons(now: now) {
            let token = UInt64(connection.generation) << 32 | UInt64(index)
            witness.ask { [inbox] isWayThere in _ = inbox.put(.hear(connection: token, isWayThere: isWayThere)) }
        }
        switch connection.settle(idle: idle, owners: owners, now: now) {
        case .open:
            break
        case .timed where connection.awaitsLook:
            break
        case .timed:
            connection.awaitsLook = true
            looks.append(.init(index: index, generation: connection.generation, due: now + interval))
        case .over(let reason):
            return reason
        }
        return nil
    }

    private func belongs(_ index: Int, to groups: Set<ObjectIdentifier>) -> Bool {
        connections[index].map { groups.contains(ObjectIdentifier($0.observer)) } ?? false
    }

    private func end(_ index: Int, _ reason: RelayOutcome.Reason) {
        guard let (observer, lease, outcome) = conclude(index, reason) else { return }
        // The last reference: both descriptors are closed here, and only then the lease goes.
        connections[index] = nil
        vacant.append(index)
        withExtendedLifetime(lease) { observer.ended(outcome) }
    }

    private func conclude(
        _ index: Int,
        _ reason: RelayOutcome.Reason
    ) -> (any RelayObserver, lease: (any Sendable)?, RelayOutcome)? {
        connections[index].map { ($0.observer, $0.lease, $0.conclude(reason)) }
    }
}

/// Connections whose end depends on time, in the order in which they are to be looked at again.
///
/// Each waits its own interval: looked at together, those that end within one interval would end in one burst, and who
/// connects at that moment would wait for all of them.
struct RelayTimerQueue {
    /// One look, at whoever has this place and this generation by then.
    struct Look {
        let index: Int
        let generation: UInt32
        let due: ContinuousClock.Instant
    }

    private var looks: [Look] = []
    private var first = 0

    /// When the next one is due; nil when nobody waits.
    var next: ContinuousClock.Instant? { first < looks.count ? looks[first].due : nil }

    /// Places that are taken, by those who were looked at too.
    var room: Int { looks.count }

    /// - Parameter look: Not due before any that waits already.
    mutating func append(_ look: Look) {
        looks.append(look)
    }

    /// The next one that is due by now, if there is one.
    mutating func takeDue(by now: ContinuousClock.Instant) -> Look? {
        guard let next, next <= now else { return nil }
        defer { advance() }
        return looks[first]
    }

    private mutating func advance() {
        first += 1
        if first == looks.count {
            looks.removeAll(keepingCapacity: looks.count <= 1_024)
            first = 0
        } else if first >= 1_024, first * 2 >= looks.count {
            looks.removeFirst(first)
            first = 0
        }
    }
}
