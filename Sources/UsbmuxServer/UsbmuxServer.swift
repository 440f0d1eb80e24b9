package import Devices
package import Logging
package import Model
import ServiceLifecycle
import Synchronization
package import SystemIO
package import Tunnels

/// A second usbmuxd, for the tools that only know that one: they list the phones and reach them through Patchbay.
///
/// It answers ListDevices, Listen, ListListeners and Connect itself, in both of usbmuxd's dialects, and passes everything
/// else (the machine's identifier, pairing records) on to usbmuxd, one request at a time. It stays up, with an empty list,
/// while usbmuxd is away, and its listeners stay connected when usbmuxd restarts. Streams go through the same dialer as
/// every tunnel, with its limits and repairs, and through the same relay.
///
/// A stream whose phone or usbmuxd goes ends for its client as usbmuxd lets it end: nobody can reset a unix socket, so that
/// only a client that is still sending sees an error. `status()` counts such streams.
package final class UsbmuxServer: Service {
    /// About as many as usbmuxd itself can have; what goes beyond is hung up on. Streams are not counted here.
    static let clientLimit = 1_024
    /// How long to wait before accepting again when the process is out of descriptors.
    private static let pause = Duration.milliseconds(100)

    private let listener: Listener
    private let phones: AsyncStream<[Device]>
    private let dialer: any Dialer
    private let usbmuxd: NativeUsbmuxClient
    private let relay: Relay
    private let clock: any Clock<Duration>
    private let logger: Logger
    private let switchboard = DeviceEventHub()
    private let tally: UsbmuxServerStatistics

    /// - Parameters:
    ///   - listener: On a unix socket that is not usbmuxd's; closed at the end of `run()`.
    ///   - phones: The list of phones whenever it changes, for one consumer.
    ///   - dialer: Reaches phones.
    ///   - usbmuxd: Gets what the facade does not answer itself.
    ///   - relay: Carries the streams; it must outlive `run()`.
    ///   - clientLimit: How many clients may be there at once, beside those that have a stream.
    ///   - clock: What pauses are measured with.
    ///   - logger: For the operator.
    package init(
        on listener: Listener,
        phones: AsyncStream<[Device]>,
        dialer: any Dialer,
        usbmuxd: NativeUsbmuxClient,
        relay: Relay,
        clientLimit: Int = UsbmuxServer.clientLimit,
        clock: any Clock<Duration> = ContinuousClock(),
        logger: Logger
    ) {
        self.listener = listener
        self.phones = phones
        self.dialer = dialer
        self.usbmuxd = usbmuxd
        self.relay = relay
        self.clock = clock
        self.logger = logger
        tally = UsbmuxServerStatistics(limit: clientLimit)
    }

    /// Serves until graceful shutdown; then every client is hung up on and every stream is cut.
    package func run() async throws {
        logger.info("usbmuxd's clients are served", metadata: ["socket": "\(listener.address)"])
        await cancelWhenGracefulShutdown { await self.serve() }
        listener.close()
        await relay.cut(tally)
    }

    package func status() -> SourceStatus {
        let counts = tally.counts
        return SourceStatus(
            name: "facade",
            state: .ok,
            detail: "usbmuxd's clients are served at \(listener.address): \(counts.clients) connected, "
                + "\(counts.streams) streams, \(counts.last) so far, \(counts.cut) cut"
        )
    }

    private func serve() async {
        await withTaskGroup(of: Void.self) { group in
            group.addTask { [self] in
                for await devices in phones { await switchboard.show(devices) }
            }
            group.addTask { await self.accept() }
        }
    }

    private func accept() async {
        await withDiscardingTaskGroup { group in
            var isTroubled = false
            while true {
                do {
                    let socket = Descriptor(owning: try await listener.accept().release())
                    guard let number = tally.enter() else {
                        note("a client was turned away", "\(tally.counts.clients) are there already", &isTroubled)
                        continue
                    }
                    isTroubled = false
                    let client = self.client(number)
                    let raw = socket.release()
                    group.addTask { [tally] in
                        await client.serve(Descriptor(owning: raw))
                        tally.leave()
                    }
                } catch is CancellationError {
                    return
                } catch {
                    note("clients of the facade wait", "\(error)", &isTroubled)
                    // The connection stays in the queue; cancelled here, the next accept throws.
                    try? await clock.sleep(for: Self.pause)
                }
            }
        }
    }

    /// Once for each time of trouble.
    private func note(_ what: Logger.Message, _ reason: String, _ isTroubled: inout Bool) {
        if !isTroubled { logger.warning(what, metadata: ["reason": "\(reason)"]) }
        isTroubled = true
    }

    private func client(_ number: UInt32) -> UsbmuxServerConnection {
        UsbmuxServerConnection(
            number: number,
            switchboard: switchboard,
            dialer: dialer,
            usbmuxd: usbmuxd,
            relay: relay,
            tally: tally,
            logger: logger
        )
    }
}

/// Counts who is at the facade, and is the group of its streams in the relay.
final class UsbmuxServerStatistics: RelayObserver {
    struct Counts: Hashable, Sendable {
        /// Those who have not got a stream yet, or want none.
        var clients = 0
        var streams = 0
        /// Streams that ended because the way to their phone did.
        var cut: UInt64 = 0
        /// The number of the newest client.
        var last: UInt32 = 0
    }

    private let limit: Int
    private let state = Mutex(Counts())

    init(limit: Int) { self.limit = limit }

    var counts: Counts { state.withLock { $0 } }

    /// - Returns: The client's number; nil when there is no place for it.
    func enter() -> UInt32? {
        state.withLock { counts in
            guard counts.clients < limit else { return nil }
            counts.clients += 1
            counts.last &+= 1
            return counts.last
        }
    }

    func leave() { state.withLock { $0.clients -= 1 } }

    /// A stream is about to be handed to the relay.
    func begin() { state.withLock { $0.streams += 1 } }

    /// Nobody asks how much the facade carried.
    func relayed(up: Int, down: Int) {}

    func ended(_ outcome: RelayOutcome) {
        state.withLock { counts in
            counts.streams -= 1
            if outcome.reason == .severed { counts.cut += 1 }
        }
    }
}
