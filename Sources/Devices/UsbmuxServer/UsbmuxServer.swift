package import Logging
package import Model
import ServiceLifecycle
import Synchronization
package import SystemIO
package import Tunnels

/// A usbmuxd-compatible server. Tools that only speak usbmuxd's protocol list and reach devices through Patchbay.
///
/// Answers ListDevices, Listen, ListListeners and Connect in both of usbmuxd's dialects. Forwards every other request
/// (the host's BUID, pairing records) to usbmuxd, one at a time. Keeps running with an empty list while usbmuxd is
/// absent; listeners stay connected when usbmuxd restarts. Streams use the same dialer and relay as tunnels, with their
/// limits and retries.
///
/// When a device or usbmuxd goes away, the stream ends for its client as in usbmuxd. A unix socket cannot be reset, so
/// only a client that is still sending sees an error. `status()` counts these streams.
package final class UsbmuxServer: Service {
    /// Maximum number of clients without a stream, about as many as usbmuxd supports. Further ones are disconnected.
    static let clientLimit = 1_024
    /// Delay before the next accept when the process has no file descriptor left.
    private static let acceptRetryDelay = Duration.milliseconds(100)

    private let listener: Listener
    private let devices: AsyncStream<[Device]>
    private let dialer: any Dialer
    private let usbmuxd: any UsbmuxForwarder
    private let relay: Relay
    private let policy: (any ConnectionPolicy)?
    private let clock: any Clock<Duration>
    private let logger: Logger
    private let eventHub = DeviceEventHub()
    private let statistics: UsbmuxServerStatistics

    /// Creates a server.
    ///
    /// - Parameters:
    ///   - listener: Listens on a unix socket other than usbmuxd's. `run()` closes the listener.
    ///   - devices: The device list at each change, for one consumer.
    ///   - dialer: Dials devices.
    ///   - usbmuxd: Receives the requests that this server does not answer.
    ///   - relay: Relays the streams; must outlive `run()`.
    ///   - policy: Decides about each stream, by the user of the client; nil allows all.
    ///   - clientLimit: Maximum number of clients without a stream.
    ///   - clock: The clock for delays.
    ///   - logger: The logger.
    package init(
        on listener: Listener,
        devices: AsyncStream<[Device]>,
        dialer: any Dialer,
        usbmuxd: any UsbmuxForwarder,
        relay: Relay,
        policy: (any ConnectionPolicy)? = nil,
        clientLimit: Int = UsbmuxServer.clientLimit,
        clock: any Clock<Duration> = ContinuousClock(),
        logger: Logger = Logger(label: "usbmuxd") { _ in SwiftLogNoOpLogHandler() }
    ) {
        self.listener = listener
        self.devices = devices
        self.dialer = dialer
        self.usbmuxd = usbmuxd
        self.relay = relay
        self.policy = policy
        self.clock = clock
        self.logger = logger
        statistics = UsbmuxServerStatistics(limit: clientLimit)
    }

    /// Serves until graceful shutdown, then closes every client and every stream.
    package func run() async throws {
        logger.info("serving usbmuxd clients", metadata: ["socket": "\(listener.address)"])
        await cancelWhenGracefulShutdown { await self.serve() }
        listener.close()
        await relay.closeConnections(of: statistics)
    }

    package func status() -> SourceStatus {
        let counts = statistics.counts
        return SourceStatus(
            name: "usbmux-server",
            state: .ok,
            detail: "usbmuxd clients are served at \(listener.address): \(counts.clients) connected, "
                + "\(counts.streams) streams, \(counts.last) so far, \(counts.lost) cut"
        )
    }

    private func serve() async {
        await withTaskGroup(of: Void.self) { group in
            group.addTask { [self] in
                for await attached in devices { await eventHub.update(attached.filter { $0.platform == .ios }) }
            }
            group.addTask { await self.accept() }
        }
    }

    private func accept() async {
        await withDiscardingTaskGroup { group in
            var hasLoggedProblem = false
            while true {
                do {
                    let socket = Descriptor(owning: try await listener.accept().release())
                    guard let number = statistics.clientConnected() else {
                        logOnce(
                            "a usbmuxd client was rejected",
                            reason: "\(statistics.counts.clients) clients are connected",
                            unless: &hasLoggedProblem
                        )
                        continue
                    }
                    hasLoggedProblem = false
                    let client = self.client(number)
                    let raw = socket.release()
                    group.addTask { [statistics] in
                        await client.serve(Descriptor(owning: raw))
                        statistics.clientDisconnected()
                    }
                } catch is CancellationError {
                    return
                } catch {
                    logOnce("usbmuxd clients cannot be accepted", reason: "\(error)", unless: &hasLoggedProblem)
                    // The connection stays in the accept queue. After a cancellation the next accept throws.
                    try? await clock.sleep(for: Self.acceptRetryDelay)
                }
            }
        }
    }

    /// Logs the first of consecutive failures.
    private func logOnce(_ message: Logger.Message, reason: String, unless hasLogged: inout Bool) {
        if !hasLogged { logger.warning(message, metadata: ["reason": "\(reason)"]) }
        hasLogged = true
    }

    private func client(_ number: UInt32) -> UsbmuxServerConnection {
        UsbmuxServerConnection(
            number: number,
            eventHub: eventHub,
            dialer: dialer,
            usbmuxd: usbmuxd,
            relay: relay,
            policy: policy,
            statistics: statistics,
            logger: logger
        )
    }
}

/// Counts clients and streams. Identifies this server's streams in the relay.
final class UsbmuxServerStatistics: RelayObserver {
    struct Counts: Hashable, Sendable {
        /// Number of clients without a stream.
        var clients = 0
        var streams = 0
        /// Number of streams that ended because the device or usbmuxd went away.
        var lost: UInt64 = 0
        /// Number of the newest client.
        var last: UInt32 = 0
    }

    private let limit: Int
    private let state = Mutex(Counts())

    init(limit: Int) { self.limit = limit }

    var counts: Counts { state.withLock { $0 } }

    /// Counts a new client.
    ///
    /// - Returns: The client's number; nil at the limit.
    func clientConnected() -> UInt32? {
        state.withLock { counts in
            guard counts.clients < limit else { return nil }
            counts.clients += 1
            counts.last &+= 1
            return counts.last
        }
    }

    func clientDisconnected() { state.withLock { $0.clients -= 1 } }

    /// Counts a stream that is about to be handed to the relay.
    func beginStream() { state.withLock { $0.streams += 1 } }

    /// Relayed bytes are not counted.
    func relayed(up: Int, down: Int, at now: MonotonicInstant) {}

    func ended(_ outcome: RelayOutcome) {
        state.withLock { counts in
            counts.streams -= 1
            if outcome.reason == .linkLost { counts.lost += 1 }
        }
    }
}
