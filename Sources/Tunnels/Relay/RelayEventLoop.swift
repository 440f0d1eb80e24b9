import CLinux
import Glibc
import SystemIO

/// The relay thread: an edge-triggered epoll loop over both sockets of every connection.
///
/// All state belongs to the thread that runs the loop.
final class RelayEventLoop {
    /// The epoll token of the command queue. Connections have `generation << 32 | index << 1 | side`.
    private static let wakeToken = UInt64.max

    private let commands: RelayCommandQueue
    private let idle: Duration
    private let pool = RelayBufferPool()
    private let owners = SocketOwnerLookup()
    private let epoll: Descriptor
    private var connections: [RelayConnection?] = []
    private var vacant: [Int] = []
    private var nextGeneration: UInt32 = 0
    /// Indices of connections that used up their budget and have more bytes to move.
    private var ready: [Int] = []
    /// The connections that may end by a timeout.
    private var timers = RelayTimerQueue()
    private var stopped: [CheckedContinuation<Void, Never>] = []

    init(_ commands: RelayCommandQueue, idle: Duration) {
        self.commands = commands
        self.idle = idle
        let number = epoll_create1(CInt(EPOLL_CLOEXEC))
        precondition(number >= 0, "epoll_create1 failed: errno \(errno)")
        epoll = Descriptor(owning: number)
        watch(commands.wake.number, events: EPOLLIN.rawValue, token: Self.wakeToken)
    }

    /// Runs until the stop command.
    func run() {
        blockSIGPIPE()
        let events = UnsafeMutableBufferPointer<epoll_event>.allocate(capacity: 256)
        defer { events.deallocate() }
        while stopped.isEmpty {
            let count = epoll_wait(epoll.number, events.baseAddress, CInt(events.count), epollTimeout)
            let now = ContinuousClock.now
            var hasCommands = false
            for event in events.prefix(Int(max(count, 0))) {
                if event.data.u64 == Self.wakeToken { hasCommands = true } else { handle(event, now) }
            }
            // Commands come first, so that closing connections does not wait for busy ones.
            if hasCommands { execute(commands.drain(), now) }
            let batch = ready
            ready = []
            for index in batch {
                process(index, now)
                // Commands also run between the connections of one iteration, because each may move its whole budget.
                if commands.hasCommands { execute(commands.drain(), now) }
            }
            while let timer = timers.popDue(by: now) { handle(timer, now) }
        }
        let now = ContinuousClock.now
        execute(commands.close(), now)
        for index in connections.indices { close(index, .aborted) }
        for continuation in stopped { continuation.resume() }
    }

    /// Blocks SIGPIPE on this thread.
    ///
    /// splice(2) to a closed socket raises SIGPIPE and has no flag like MSG_NOSIGNAL. The signal goes to the writing
    /// thread (signal(7)).
    private func blockSIGPIPE() {
        var signals = sigset_t()
        sigemptyset(&signals)
        sigaddset(&signals, SIGPIPE)
        pthread_sigmask(SIG_BLOCK, &signals, nil)
    }

    /// The interval between the timeout checks of a connection.
    private var interval: Duration { min(idle / 4, .milliseconds(25)) }

    /// The timeout of epoll_wait(2) in milliseconds.
    private var epollTimeout: CInt {
        guard ready.isEmpty else { return 0 }
        guard let next = timers.next else { return -1 }
        let (seconds, attoseconds) = (next - .now).components
        return CInt(max(0, seconds * 1_000 + attoseconds / 1_000_000_000_000_000 + 1))
    }

    private func execute(_ batch: consuming [RelayCommandQueue.Command], _ now: ContinuousClock.Instant) {
        // Each command is released before the next one runs. A connection's permit must not outlive a close in the same
        // batch.
        batch.reverse()
        while let command = batch.popLast() { execute(command, now) }
    }

    private func execute(_ command: RelayCommandQueue.Command, _ now: ContinuousClock.Instant) {
        switch command {
        case .adopt(let new):
            let index = insert(new, now)
            if let code = watchBoth(index) { close(index, .targetFailed(code)) }
        case .linkChecked(let token, let isReachable):
            let index = Int(token & 0xFFFF_FFFF)
            guard let connection = connections[index], connection.generation == UInt32(token >> 32) else { return }
            connection.linkChecked(isReachable: isReachable)
            process(index, now)
        case .closeConnections(let groups, let continuation):
            for index in connections.indices where belongs(index, to: groups) { close(index, .aborted) }
            continuation.resume()
        case .stop(let continuation):
            stopped.append(continuation)
        }
    }

    private func insert(_ new: RelayCommandQueue.NewConnection, _ now: ContinuousClock.Instant) -> Int {
        nextGeneration &+= 1
        let connection = RelayConnection(new, generation: nextGeneration, pool: pool, now: now)
        guard let index = vacant.popLast() else {
            connections.append(connection)
            return connections.count - 1
        }
        connections[index] = connection
        return index
    }

    /// Registers both sockets with epoll.
    ///
    /// - Returns: The errno if the kernel watches no more descriptors; otherwise nil.
    private func watchBoth(_ index: Int) -> CInt? {
        guard let connection = connections[index] else { return nil }
        let (client, target) = connection.numbers
        let token = UInt64(connection.generation) << 32 | UInt64(index) << 1
        // Existing readiness is reported as an edge too (epoll(7)).
        let isWatched =
            watch(client, events: RelaySocket.interest, token: token)
            && watch(target, events: RelaySocket.interest, token: token | 1)
        return isWatched ? nil : errno
    }

    @discardableResult
    private func watch(_ number: CInt, events interest: UInt32, token: UInt64) -> Bool {
        var event = epoll_event()
        event.events = interest
        event.data.u64 = token
        return epoll_ctl(epoll.number, EPOLL_CTL_ADD, number, &event) == 0
    }

    private func handle(_ event: epoll_event, _ now: ContinuousClock.Instant) {
        let token = event.data.u64
        let index = Int(token >> 1 & 0x7FFF_FFFF)
        // An earlier event of the same batch may have closed the connection or reused its index.
        guard let connection = connections[index], connection.generation == UInt32(token >> 32) else { return }
        connection.handleEvents(event.events, onClient: token & 1 == 0)
        // The connection is processed with the ready list, once for both sockets.
        queue(connection, index)
    }

    private func handle(_ timer: RelayTimerQueue.Entry, _ now: ContinuousClock.Instant) {
        guard let connection = connections[timer.index], connection.generation == timer.generation else { return }
        connection.hasTimer = false
        process(timer.index, now)
    }

    private func queue(_ connection: RelayConnection, _ index: Int) {
        guard !connection.isQueued else { return }
        connection.isQueued = true
        ready.append(index)
    }

    private func process(_ index: Int, _ now: ContinuousClock.Instant) {
        if let reason = advance(index, now) { close(index, reason) }
    }

    /// Moves bytes, starts a pending link check, and checks for completion.
    ///
    /// - Returns: The reason if the connection is over; otherwise nil.
    private func advance(_ index: Int, _ now: ContinuousClock.Instant) -> RelayOutcome.Reason? {
        guard let connection = connections[index] else { return nil }
        connection.isQueued = false
        if connection.pump(through: pool, now: now) { queue(connection, index) }
        if let linkChecker = connection.pendingLinkCheck(now: now) {
            let token = UInt64(connection.generation) << 32 | UInt64(index)
            linkChecker.check { [commands] isReachable in
                _ = commands.enqueue(.linkChecked(connection: token, isReachable: isReachable))
            }
        }
        switch connection.checkCompletion(idle: idle, owners: owners, now: now) {
        case .open:
            break
        case .timed where connection.hasTimer:
            break
        case .timed:
            connection.hasTimer = true
            timers.append(.init(index: index, generation: connection.generation, due: now + interval))
        case .over(let reason):
            return reason
        }
        return nil
    }

    private func belongs(_ index: Int, to groups: Set<ObjectIdentifier>) -> Bool {
        connections[index].map { groups.contains(ObjectIdentifier($0.observer)) } ?? false
    }

    private func close(_ index: Int, _ reason: RelayOutcome.Reason) {
        guard let (observer, permit, outcome) = finish(index, reason) else { return }
        // This is the last reference. Both descriptors close here, before the permit is released.
        connections[index] = nil
        vacant.append(index)
        withExtendedLifetime(permit) { observer.ended(outcome) }
    }

    private func finish(
        _ index: Int,
        _ reason: RelayOutcome.Reason
    ) -> (any RelayObserver, permit: (any Sendable)?, RelayOutcome)? {
        connections[index].map { ($0.observer, $0.permit, $0.finish(reason)) }
    }
}

/// The timers for connections that may end by a timeout, in order of their due times.
///
/// Each connection has its own timer. A common timer would close many connections in one burst and delay new clients.
struct RelayTimerQueue {
    /// A timer of the connection with this index and generation.
    struct Entry {
        let index: Int
        let generation: UInt32
        let due: ContinuousClock.Instant
    }

    private var entries: [Entry] = []
    private var first = 0

    /// The due time of the next timer; nil if there is none.
    var next: ContinuousClock.Instant? { first < entries.count ? entries[first].due : nil }

    /// The number of array elements, including already removed entries.
    var storageCount: Int { entries.count }

    /// Appends a timer.
    ///
    /// - Parameter entry: Due no earlier than every other timer.
    mutating func append(_ entry: Entry) {
        entries.append(entry)
    }

    /// Removes and returns the next timer that is due.
    mutating func popDue(by now: ContinuousClock.Instant) -> Entry? {
        guard let next, next <= now else { return nil }
        defer { advance() }
        return entries[first]
    }

    private mutating func advance() {
        first += 1
        if first == entries.count {
            entries.removeAll(keepingCapacity: entries.count <= 1_024)
            first = 0
        } else if first >= 1_024, first * 2 >= entries.count {
            entries.removeFirst(first)
            first = 0
        }
    }
}
