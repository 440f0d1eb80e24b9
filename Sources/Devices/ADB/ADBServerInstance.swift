import CLinux
import Glibc
import Model
import Synchronization
import SystemIO

/// One run of an adb server, with an open connection on which the server sends the list of its phones at each change.
///
/// The server is one thread. It writes a changed list to this connection before it handles a later request, also when
/// another phone has taken a transport. So if no unread list waits here after a stream was opened, the stream leads to
/// the phone of the last list.
final class ADBServerInstance: Sendable {
    /// One stay of a phone on a transport.
    struct Attachment: Hashable, Sendable {
        let id: ADBTransportID
        let number: UInt64
    }

    private struct State {
        var attachments: [ADBTransportID: (record: ADBDeviceRecord, number: UInt64)] = [:]
        var count: UInt64 = 0
        /// True from the arrival of a list until it is applied.
        var isReading = false
        /// The checks of ended streams without an answer; nil after `close()`.
        var checks: [(id: ADBTransportID, answer: @Sendable (Bool) -> Void)]? = []
    }

    /// The address at which this run of the server listens.
    let address: SocketAddress
    private let connection: ADBConnection
    private let state = Mutex(State())
    private let checkAdded = AsyncStream.makeStream(of: Void.self, bufferingPolicy: .bufferingNewest(1))

    /// Connects, and asks for the lists. Has no timeout: the caller sets one and cancels.
    ///
    /// - Throws: `ADBError`; `CancellationError`.
    init(at address: ServerAddress) async throws {
        connection = try await ADBConnection(to: address)
        self.address =
            address.path.map { .unix(path: $0) } ?? SocketAddress.peer(of: connection.socket.number) ?? .unix(path: "")
        try await connection.request(.trackDevices)
    }

    /// Receives and applies the next list. Called by one task.
    ///
    /// - Returns: The phones, those that accept requests with their attachment.
    /// - Throws: `ADBError` at the end of the server; `CancellationError`.
    func nextList() async throws -> [(record: ADBDeviceRecord, attachment: Attachment?)] {
        var decoder = ADBTextDecoder()
        while true {
            try await Poller.shared.wait(for: .readable, of: connection.socket.number)
            state.withLock { $0.isReading = true }
            decoder.append(try await connection.receive(atMost: decoder.bytesNeeded, for: "the list of devices"))
            guard let text = try decoder.next() else { continue }
            return apply(ADBDeviceRecord.list(text))
        }
    }

    private func apply(_ list: [ADBDeviceRecord]) -> [(record: ADBDeviceRecord, attachment: Attachment?)] {
        state.withLock { state in
            let before = state.attachments
            state.attachments = [:]
            for record in list where record.state == .ready {
                if let known = before[record.transportID], record.namesPhone, known.record.serial == record.serial {
                    state.attachments[record.transportID] = known
                } else {
                    state.count += 1
                    state.attachments[record.transportID] = (record, state.count)
                }
            }
            state.isReading = false
            return list.map { record in
                let known = state.attachments[record.transportID]
                return (record, known.map { Attachment(id: record.transportID, number: $0.number) })
            }
        }
    }

    /// True if the phone has not left its transport. Valid for a stream after the server's answer. Never blocks.
    func isCurrent(_ attachment: Attachment) -> Bool {
        state.withLock { state in
            guard !state.isReading, state.checks != nil, state.attachments[attachment.id]?.number == attachment.number
            else { return false }
            let events = Int16(truncatingIfNeeded: EPOLLIN.rawValue | EPOLLRDHUP.rawValue)
            var entry = pollfd(fd: connection.socket.number, events: events, revents: 0)
            return poll(&entry, 1, 0) == 0
        }
    }

    /// False as soon as the server has closed the connection or after `close()`.
    private var isAlive: Bool {
        guard state.withLock({ $0.checks != nil }) else { return false }
        var entry = pollfd(
            fd: connection.socket.number,
            events: Int16(truncatingIfNeeded: EPOLLRDHUP.rawValue),
            revents: 0
        )
        return poll(&entry, 1, 0) == 0
    }

    /// Ends the use of this run, and answers its checks with false.
    func close() {
        let checks = state.withLock { $0.checks.take() }
        for check in checks ?? [] { check.answer(false) }
    }
}

extension ADBDeviceRecord {
    /// True if no other phone gets the same transport. A phone over TCP keeps it through an outage, also for another
    /// phone at its address, and the list does not show that.
    var namesPhone: Bool { isOnCable || serial.text.hasPrefix("emulator-") }
}

/// Checks whether the phones of ended streams are still ready.
///
/// The server marks a phone as offline before it closes the streams of the phone (handle_offline in adb.cpp). A list
/// requested after the end of a stream therefore tells a normal close from a lost link. The lists that the server sends
/// by itself do not: a phone over TCP becomes offline without one.
extension ADBServerInstance {
    /// Calls `answer` once; with false also if the server can no longer be reached.
    func check(_ attachment: Attachment, _ answer: @escaping @Sendable (Bool) -> Void) {
        let isQueued = state.withLock { $0.checks?.append((attachment.id, answer)) != nil }
        if isQueued { checkAdded.continuation.yield() } else { answer(false) }
    }

    /// Answers checks until cancelled. One list answers all checks made before its request.
    ///
    /// - Parameter list: Requests the list of the server.
    func answerChecks(list: @Sendable () async throws -> [ADBDeviceRecord]) async {
        for await _ in checkAdded.stream {
            let checks = state.withLock { state in
                defer { state.checks = state.checks.map { _ in [] } }
                return state.checks ?? []
            }
            let list = (try? await list()) ?? []
            // Only a list of this run counts: the next run assigns the same numbers.
            let ready = isAlive ? list.filter { $0.state == .ready } : []
            for check in checks { check.answer(ready.contains { $0.transportID == check.id }) }
        }
    }
}
