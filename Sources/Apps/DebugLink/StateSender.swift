import Synchronization
import SystemIO

/// Sends states to one app, one frame at a time.
///
/// The earlier of the two known clients takes each chunk that it reads for one frame. So a frame is one write, and the
/// next frame waits until the app's system has acknowledged the one before.
final class StateSender: Sendable {
    /// The time in which the app must read, in seconds. A later state is refused. An app that is stopped at a
    /// breakpoint does not read.
    private static let limit = Duration.seconds(5)
    /// The interval between two checks for acknowledgement. The kernel has no event for it.
    private static let interval = Duration.milliseconds(10)

    private let stream: DebugLinkSocket
    private let clock: any Clock<Duration>
    private let turn = AsyncSemaphore(permits: 1)
    /// The rest of a partly written frame. The next call completes it, because half a frame would corrupt the next one.
    private let unwritten = Mutex<ArraySlice<UInt8>>([])

    init(_ stream: DebugLinkSocket, clock: any Clock<Duration>) {
        self.stream = stream
        self.clock = clock
    }

    /// Sends one whole frame.
    ///
    /// - Throws: `DebugLinkError.notTaken`, `.connectionFailed`, `SocketError`, `CancellationError`.
    func send(_ frame: [UInt8]) async throws {
        let permit = try await turn.acquire()
        defer { permit.release() }
        try await flush()
        try await waitForAcknowledgement()
        unwritten.withLock { $0 = frame[...] }
        do { try await flush() } catch {
            // A frame without a written byte is not sent later.
            unwritten.withLock { if $0.count == frame.count { $0 = [] } }
            throw error
        }
    }

    private func flush() async throws {
        var rest = unwritten.withLock { $0 }
        defer { unwritten.withLock { [rest] in $0 = rest } }
        try await stream.send(&rest, stallLimit: Self.limit)
    }

    private func waitForAcknowledgement() async throws {
        for _ in 0..<Int(Self.limit / Self.interval) {
            if stream.unacknowledgedBytes == 0 { return }
            try await clock.sleep(for: Self.interval)
        }
        throw DebugLinkError.notTaken(seconds: Int(Self.limit.components.seconds))
    }
}
