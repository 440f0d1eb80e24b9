import CLinux
import Glibc
import Synchronization
import SystemIO

/// One run of usbmuxd, as long as we hear it: DeviceIDs mean something within it and nothing beyond.
///
/// Owns the socket on which usbmuxd was told to Listen. A run that ends has closed that socket before the next one can
/// take over usbmuxd's address (it holds a lock file until it has dropped its clients), and the kernel shows that at once,
/// whether or not anybody has read up to the end. So a stream that was opened with a DeviceID of this epoch, and is
/// vouched for after usbmuxd said yes, leads to the phone that had this DeviceID.
final class UsbmuxdSession: Sendable {
    private let socket: Descriptor
    private let daemon: pid_t?
    private let isEnded = Atomic(false)

    /// - Parameter socket: Has had "ok" to its Listen.
    init(listeningOn socket: consuming Descriptor) {
        daemon = Self.daemon(behind: socket.number)
        self.socket = socket
    }

    /// For reading, by one task, while it holds the epoch.
    var number: CInt { socket.number }

    /// False as soon as usbmuxd has hung up, or we have stopped listening.
    var isAlive: Bool {
        if isEnded.load(ordering: .acquiring) { return false }
        let hangUp = Int16(truncatingIfNeeded: EPOLLRDHUP.rawValue)
        var state = pollfd(fd: socket.number, events: hangUp, revents: 0)
        return poll(&state, 1, 0) == 0
    }

    func end() { isEnded.store(true, ordering: .releasing) }

    /// Whether a stream, opened and answered before this is asked, is one of this run.
    func vouches(for stream: CInt) -> Bool {
        // The process first, the sign of life last: it must hold at a moment after the answer came.
        Self.daemon(behind: stream) == daemon && isAlive
    }

    /// The process that listens behind a unix socket (SO_PEERCRED, unix(7)); nil for TCP.
    private static func daemon(behind number: CInt) -> pid_t? {
        // struct ucred: pid, uid, gid; glibc shows it only with _GNU_SOURCE.
        var credentials: [CInt] = [0, 0, 0]
        var size = socklen_t(3 * MemoryLayout<CInt>.size)
        let status = getsockopt(number, SOL_SOCKET, SO_PEERCRED, &credentials, &size)
        return status == 0 && credentials[0] != 0 ? credentials[0] : nil
    }
}

/// Says of phones of one run of usbmuxd whether they are still on the cable, for streams that have ended.
///
/// usbmuxd takes a phone off its list before it closes the phone's streams (device_remove in device.c), so a list that was
/// asked for after the end of a stream tells a stream that was closed from one that was cut. When usbmuxd itself ends, so
/// does its epoch. One list answers everybody who asked before it was asked for, so that a thousand streams that end at
/// once are one question to usbmuxd, or two.
final class DevicePresenceChecker: Sendable {
    private struct Question: Sendable {
        let deviceID: UInt32
        let answer: @Sendable (Bool) -> Void
    }

    private struct State {
        var questions: [Question] = []
        var isClosed = false
    }

    private let epoch: UsbmuxdSession
    private let lister: any UsbmuxClient
    private let state = Mutex(State())
    private let wake = AsyncStream.makeStream(of: Void.self, bufferingPolicy: .bufferingNewest(1))

    init(of epoch: UsbmuxdSession, asking lister: any UsbmuxClient) {
        self.epoch = epoch
        self.lister = lister
    }

    /// The answer comes once; false also where usbmuxd cannot be asked any more.
    func ask(about deviceID: UInt32, _ answer: @escaping @Sendable (Bool) -> Void) {
        let isKept =
            epoch.isAlive
            && state.withLock { state in
                if !state.isClosed { state.questions.append(Question(deviceID: deviceID, answer: answer)) }
                return !state.isClosed
            }
        if isKept { wake.continuation.yield() } else { answer(false) }
    }

    /// Answers until it is cancelled.
    func run() async {
        for await _ in wake.stream {
            let questions = take()
            let list = (try? await lister.listDevices()) ?? []
            // Only a list of this run says anything: the next one gives out the same numbers.
            let present = epoch.isAlive ? Set(list.map(\.deviceID)) : []
            for question in questions { question.answer(present.contains(question.deviceID)) }
        }
    }

    /// The run of usbmuxd is over, and every way through it.
    func close() {
        state.withLock { $0.isClosed = true }
        for question in take() { question.answer(false) }
    }

    private func take() -> [Question] {
        state.withLock { state in
            defer { state.questions = [] }
            return state.questions
        }
    }
}

/// Testifies about the streams to one phone, under one of its DeviceIDs.
struct DeviceLinkChecker: LinkChecker {
    let deviceID: UInt32
    let rollCall: DevicePresenceChecker

    func ask(_ answer: @escaping @Sendable (_ isWayThere: Bool) -> Void) { rollCall.ask(about: deviceID, answer) }
}
