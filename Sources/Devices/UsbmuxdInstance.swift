import CLinux
import Glibc
import Synchronization
import SystemIO

/// One run of usbmuxd with an open connection to Patchbay. DeviceIDs are valid only within one session.
///
/// Owns the socket on which usbmuxd accepted Listen. usbmuxd holds a lock file until it has closed its clients, so this
/// socket is closed before the next run can take over the address. The kernel reports that at once, even with unread
/// data in the socket.
///
/// A stream that was opened with a DeviceID of this session leads to that device, if `owns(connection:)` holds after
/// usbmuxd replied "ok".
package final class UsbmuxdInstance: Sendable {
    /// The address at which this run of usbmuxd listens.
    let address: SocketAddress

    private let socket: Descriptor
    private let daemon: CInt?
    /// The reply "ok" to Connect as this run of usbmuxd writes it; empty before the first one.
    private let acceptance = Mutex<[UInt8]>([])
    /// The checks of devices without an answer; nil after `close()`.
    private let checks = Mutex<[(deviceID: UInt32, answer: @Sendable (Bool) -> Void)]?>([])
    private let checkAdded = AsyncStream.makeStream(of: Void.self, bufferingPolicy: .bufferingNewest(1))

    /// - Parameters:
    ///   - socket: A socket on which usbmuxd has accepted Listen.
    ///   - path: The path of a unix socket; nil for TCP.
    init(listeningOn socket: consuming Descriptor, path: String?) {
        address = path.map { .unix(path: $0) } ?? SocketAddress.peer(of: socket.number) ?? .unix(path: "")
        daemon = SocketOption.peerListener(of: socket.number)
        self.socket = socket
    }

    /// The descriptor, for reading by one task that keeps the session alive.
    var number: CInt { socket.number }

    /// False as soon as usbmuxd has closed the connection or after `close()`.
    var isAlive: Bool {
        guard checks.withLock({ $0 != nil }) else { return false }
        let hangUp = Int16(truncatingIfNeeded: EPOLLRDHUP.rawValue)
        var state = pollfd(fd: socket.number, events: hangUp, revents: 0)
        return poll(&state, 1, 0) == 0
    }

    /// Evaluates the reply to Connect.
    func evaluate(_ reply: UnsafeRawBufferPointer) -> ConnectPlan.Handshake.Result {
        UsbmuxConnectReply.evaluate(reply, known: acceptance)
    }

    /// Ends the session when Patchbay stops listening, and answers its checks with false.
    func close() {
        for check in checks.withLock({ $0.take() }) ?? [] { check.answer(false) }
    }

    /// Returns true if this run of usbmuxd opened the stream. Valid only after the reply to Connect.
    func owns(connection stream: CInt) -> Bool {
        // Check the process first and `isAlive` last: it must hold at a time after the reply.
        SocketOption.peerListener(of: stream) == daemon && isAlive
    }
}

/// Checks whether the devices of ended streams are still connected.
///
/// usbmuxd removes a device from its list before it closes the device's streams (device_remove in device.c). A list
/// requested after the end of a stream therefore tells a normal close from a lost link. When usbmuxd itself ends, its
/// session ends too.
///
/// One list answers all checks made before its request. A thousand streams that end together cause one or two list
/// requests.
extension UsbmuxdInstance {
    /// Calls `answer` once; with false also if usbmuxd can no longer be reached.
    func check(_ deviceID: UInt32, _ answer: @escaping @Sendable (Bool) -> Void) {
        let isQueued = isAlive && checks.withLock { $0?.append((deviceID, answer)) != nil }
        if isQueued { checkAdded.continuation.yield() } else { answer(false) }
    }

    /// Answers checks until cancelled.
    ///
    /// - Parameter list: Requests the devices of usbmuxd.
    func answerChecks(list: @Sendable () async throws -> [UsbmuxDeviceRecord]) async {
        for await _ in checkAdded.stream {
            let checks = checks.withLock { checks in
                defer { checks = checks.map { _ in [] } }
                return checks ?? []
            }
            let list = (try? await list()) ?? []
            // Only a list of this run counts: the next run assigns the same DeviceIDs.
            let present = isAlive ? Set(list.map(\.deviceID)) : []
            for check in checks { check.answer(present.contains(check.deviceID)) }
        }
    }
}
