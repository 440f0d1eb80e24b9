import CLinux
import Glibc
import Model
import Synchronization
import SystemIO
import TestSupport

@testable import Tunnels

/// A relayed connection between two peers, with real sockets and epoll and a simulated clock. The turns are those of
/// `RelayEventLoop`.
final class RelayModel {
    enum Event: Hashable, CaseIterable {
        case clientSends, clientFills, clientReads, clientFinishes, clientCloses
        case targetSends, targetFills, targetReads, targetFinishes, targetCloses
        case linkIsReachable, linkIsLost, timePasses
    }

    /// The bytes that each peer sends. No run of them occurs twice within the buffers of a connection.
    private static let pattern = Pattern.bytes(0..<1 << 17)

    /// The other end of a socket of the relay.
    struct Peer {
        private(set) var number: CInt
        private(set) var sent = 0
        private(set) var received = 0
        private(set) var isFinished = false
        private(set) var hasEOF = false
        private(set) var isDamaged = false
        var isClosed: Bool { number < 0 }

        private let pattern = RelayModel.pattern

        init(_ number: CInt) { self.number = number }

        /// Sends at most so many bytes; returns false if the socket takes none.
        mutating func send(_ limit: Int) -> Bool {
            guard !isClosed, !isFinished else { return false }
            let count = pattern.withUnsafeBytes { bytes in
                Glibc.send(number, bytes.baseAddress?.advanced(by: sent), limit, CInt(MSG_NOSIGNAL))
            }
            sent += max(count, 0)
            return count > 0
        }

        /// Reads what is there; returns false if that is nothing.
        mutating func read() -> Bool {
            guard !isClosed, !hasEOF else { return false }
            var buffer = [UInt8](repeating: 0, count: 16_384)
            var hasRead = false
            while true {
                let count = recv(number, &buffer, buffer.count, 0)
                guard count > 0 else {
                    hasEOF = count == 0 || errno != EAGAIN
                    return hasRead || hasEOF
                }
                let isSame = pattern.withUnsafeBytes { bytes in
                    bytes.baseAddress.map { memcmp(buffer, $0 + received, count) == 0 } == true
                }
                isDamaged = isDamaged || !isSame
                received += count
                hasRead = true
            }
        }

        mutating func finish() -> Bool {
            guard !isClosed, !isFinished else { return false }
            isFinished = true
            return shutdown(number, CInt(SHUT_WR)) == 0
        }

        mutating func close() -> Bool {
            guard !isClosed else { return false }
            Glibc.close(number)
            number = -1
            return true
        }
    }

    /// The link check, which the model answers, and the answers that the event loop has not handled yet.
    private final class LinkCheckQueue: Sendable {
        private let pending = Mutex<(@Sendable (Bool) -> Void)?>(nil)
        private let results = Mutex<[Bool]>([])

        var isEmpty: Bool { results.withLock { $0.isEmpty } }

        func begin(_ completion: @escaping @Sendable (Bool) -> Void) { pending.withLock { $0 = completion } }

        func end(_ isReachable: Bool) -> Bool {
            guard let completion = pending.withLock({ $0.take() }) else { return false }
            completion(isReachable)
            return true
        }

        func enqueue(_ isReachable: Bool) { results.withLock { $0.append(isReachable) } }

        func next() -> Bool? { results.withLock { $0.isEmpty ? nil : $0.removeFirst() } }
    }

    private static let idle = Duration.milliseconds(300)
    private static let interval = Duration.milliseconds(25)

    private(set) var client: Peer
    private(set) var target: Peer
    private(set) var reason: RelayOutcome.Reason?
    private let table = ConnectionTable()
    private let handle: ConnectionHandle
    private let probe = RelayProbe()
    private let check = LinkCheckQueue()
    private let owners = SocketOwnerLookup()
    private let events = UnsafeMutableBufferPointer<epoll_event>.allocate(capacity: 8)
    private var now = MonotonicInstant.now

    init(_ halfClose: Connection.HalfClose, hasLinkCheck: Bool) {
        let (clientEnds, targetEnds) = (Self.pair(), Self.pair())
        (client, target) = (Peer(clientEnds.0), Peer(targetEnds.0))
        var properties = RelayTarget(number: targetEnds.1, halfClose: halfClose)
        if hasLinkCheck { properties.linkCheck = { [check] in check.begin($0) } }
        handle = table.reserve()
        let connection = RelayConnection(
            client: RelaySocket(Descriptor(owning: clientEnds.1)),
            target: RelaySocket(Descriptor(owning: targetEnds.1)),
            properties,
            inspector: nil,
            observer: probe,
            generation: handle.generation,
            now: now
        )
        table.relay(handle, connection)
        _ = table.watch(clientEnds.1, of: handle, isTarget: false)
        _ = table.watch(targetEnds.1, of: handle, isTarget: true)
        turn()
    }

    deinit {
        events.deallocate()
        _ = client.close()
        _ = target.close()
    }

    /// Returns two sockets whose buffers are full after a few kilobytes.
    private static func pair() -> (CInt, CInt) {
        var numbers: [CInt] = [0, 0]
        let kind = CInt(SOCK_STREAM.rawValue | SOCK_NONBLOCK.rawValue | SOCK_CLOEXEC.rawValue)
        precondition(socketpair(AF_UNIX, kind, 0, &numbers) == 0)
        var size: CInt = 4_608
        for number in numbers { setsockopt(number, SOL_SOCKET, SO_SNDBUF, &size, socklen_t(MemoryLayout<CInt>.size)) }
        return (numbers[0], numbers[1])
    }

    /// Lets an event happen.
    ///
    /// - Returns: False if it changes nothing.
    func handle(_ event: Event) -> Bool {
        let hasEffect =
            switch event {
            case .clientSends: client.send(3)
            case .clientFills: fill(&client)
            case .clientReads: client.read()
            case .clientFinishes: client.finish()
            case .clientCloses: client.close()
            case .targetSends: target.send(3)
            case .targetFills: fill(&target)
            case .targetReads: target.read()
            case .targetFinishes: target.finish()
            case .targetCloses: target.close()
            case .linkIsReachable: check.end(true)
            case .linkIsLost: check.end(false)
            case .timePasses: pass(.milliseconds(30))
            }
        turn()
        return hasEffect
    }

    private func fill(_ peer: inout Peer) -> Bool {
        var hasSent = false
        while peer.send(2_048) { hasSent = true }
        return hasSent
    }

    private func pass(_ time: Duration) -> Bool {
        now = now + time
        return reason == nil
    }

    /// Lets both peers read and finish, and time pass, until the connection is over and each peer has all of its bytes.
    ///
    /// - Returns: False if the connection does not end.
    func settle() -> Bool {
        for round in 0..<60 {
            turn()
            let hasRead = [client.read(), target.read()].contains(true)
            if reason != nil, !hasRead { return true }
            guard !hasRead, !check.end(true) else { continue }
            // A phone closes both directions at once, so it waits for the client's bytes.
            if !client.finish(), round > 20 { _ = target.finish() }
            _ = pass(.milliseconds(50))
        }
        return false
    }

    /// Runs the event loop until it would wait.
    private func turn() {
        var ready: [Int] = []
        repeat {
            let count = table.epoll.wait(events, timeout: 0)
            for event in events.prefix(count) {
                guard let connection = table.relayed(handle) else { return }
                connection.handleEvents(event.events, onClient: event.data.u64 & 1 == 0)
                table.queue(connection, handle.index)
            }
            while let answer = check.next() {
                _ = table.update(handle) { $0.linkChecked(isReachable: answer) }
                process()
            }
            table.takeReady(into: &ready)
            for _ in ready { process() }
            var isDue = false
            while table.popDueTimer(at: now) != nil {
                isDue = true
                if table.update(handle, { $0.hasTimer = false }) { process() }
            }
            if count == 0, ready.isEmpty, !isDue, check.isEmpty { return }
        } while reason == nil
    }

    private func process() {
        guard let end = advance() else { return }
        reason = end
        _ = table.update(handle) { _ = $0.finish(end) }
        table.remove(handle.index)
    }

    private func advance() -> RelayOutcome.Reason? {
        guard let connection = table.relayed(handle) else { return nil }
        connection.isQueued = false
        if connection.pump(through: table.pool, now: now) { table.queue(connection, handle.index) }
        table.watchFullSockets(of: connection, handle)
        if let linkCheck = connection.pendingLinkCheck(now: now, timeout: .milliseconds(500)) {
            linkCheck { [check] in check.enqueue($0) }
        }
        switch connection.checkCompletion(idle: Self.idle, owners: owners, now: now) {
        case .over(let reason): return reason
        case .timed where !connection.hasTimer:
            connection.hasTimer = true
            table.schedule(handle, at: now + Self.interval)
        case .timed, .open: break
        }
        return nil
    }
}
