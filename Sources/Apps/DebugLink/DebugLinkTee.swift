import Logging
import Synchronization
import SystemIO

/// Passes the frames of one app on to another debugger, and the states of that debugger back to this app.
///
/// The app waits for the other debugger only while it takes bytes. A debugger that is gone or takes none loses its
/// connection, and gets the frames after the next connect. A new connection begins with a whole frame.
final class DebugLinkTee: Sendable {
    /// The time limit of a dial. The app's second frame waits for the end of the first dial, and the first one is lost
    /// after a failed dial.
    private static let dialLimit = Duration.seconds(2)
    /// The time without a taken byte after which the connection to the other debugger is closed.
    private static let stallLimit = Duration.seconds(2)

    private let dial: DebuggerDial
    /// The port of this server, to which the tee must not connect.
    private let ownPort: UInt16?
    /// Sends a state to the app.
    private let sendBack: @Sendable ([UInt8]) async throws -> Void
    /// Called with true after a connect, and with false after the end of the connection.
    private let onChange: @Sendable (Bool) async -> Void
    private let clock: any Clock<Duration>
    private let logger: Logger
    private let connection = Mutex<DebugLinkSocket?>(nil)
    /// Completed by the first frame. A connection of this tee to its own server has none, and so causes no other one.
    private let firstFrame = Promise<Void>()
    private let firstDial = AsyncLatch()

    init(
        dial: @escaping DebuggerDial,
        ownPort: UInt16?,
        clock: any Clock<Duration>,
        logger: Logger,
        onChange: @escaping @Sendable (Bool) async -> Void = { _ in },
        sendBack: @escaping @Sendable ([UInt8]) async throws -> Void
    ) {
        self.dial = dial
        self.ownPort = ownPort
        self.clock = clock
        self.logger = logger
        self.onChange = onChange
        self.sendBack = sendBack
    }

    /// Keeps a connection to the other debugger from the app's first frame until the task is cancelled. `forward` needs
    /// a running call.
    func run() async {
        defer { firstDial.open() }
        do { try await firstFrame.value() } catch { return }
        var backoff = Backoff(from: .milliseconds(500), to: .seconds(30))
        while true {
            do {
                let stream = try await connect()
                backoff.reset()
                connection.withLock { $0 = stream }
                firstDial.open()
                await onChange(true)
                try await receiveStates(from: stream)
            } catch {
                if !Task.isCancelled {
                    logger.info("another debugger is not connected", metadata: ["reason": "\(error)"])
                }
            }
            connection.withLock { $0 = nil }
            firstDial.open()
            await onChange(false)
            do { try await backoff.wait(clock: clock) } catch { return }
        }
    }

    /// Passes a frame on if the other debugger is connected.
    func forward(_ frame: [UInt8]) async {
        firstFrame.complete(.success(()))
        await firstDial.wait()
        guard let stream = connection.withLock({ $0 }) else { return }
        var rest = frame[...]
        do { try await stream.send(&rest, stallLimit: Self.stallLimit) } catch {
            logger.info("another debugger does not take an app's frames", metadata: ["reason": "\(error)"])
            // Half a frame would corrupt the next one.
            connection.withLock { if $0 === stream { $0 = nil } }
            stream.close()
        }
    }

    private func connect() async throws -> DebugLinkSocket {
        let connected = try await withTimeout(Self.dialLimit, clock: clock) { [dial, ownPort, clock] in
            let (number, _, permit) = try await dial().release()
            let stream = try DebugLinkSocket(Descriptor(owning: number), permit: permit, clock: clock)
            guard !stream.leadsToPort(ownPort) else { throw DebugLinkError.ownServer }
            return stream
        }
        guard let connected else {
            throw DebugLinkError.connectionFailed("no answer within \(Self.dialLimit.components.seconds) s")
        }
        return connected
    }

    /// Sends each state of the other debugger to the app until the end of the connection.
    private func receiveStates(from stream: DebugLinkSocket) async throws {
        var decoder = DebugFrameDecoder()
        while true {
            while let state = try decoder.next() {
                do { try await sendBack(state) } catch let error as DebugLinkError {
                    logger.info("a state of another debugger was not sent", metadata: ["reason": "\(error)"])
                }
            }
            let bytes = try await stream.receive()
            guard !bytes.isEmpty else { throw DebugLinkError.connectionFailed("the debugger closed the connection") }
            decoder.append(bytes)
        }
    }
}
