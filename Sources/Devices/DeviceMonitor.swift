import FoundationEssentials
package import Logging
package import Model
import ServiceLifecycle
import SystemIO

/// Tracks the connected devices while running.
///
/// Sends Listen on one connection and requests the device list on another, because Listen does not mark the end of
/// the initial devices. Both use the native client, whichever client opens the streams. libusbmuxd's events are
/// unusable in a daemon (see `LibusbmuxdClient`), and its list waits behind a device that does not answer.
///
/// usbmuxd is normally absent on a machine without a connected device. The monitor connects when usbmuxd's socket
/// appears, or within one second.
package actor DeviceMonitor: Service {
    /// The information needed to open a stream to a device.
    package struct Handle: Sendable {
        package let deviceID: UInt32
        /// The run of usbmuxd in which the DeviceID is valid.
        let session: UsbmuxdInstance

        /// Classifies the end of a stream: normal close or lost link.
        var linkCheck: LinkCheck { { [session, deviceID] in session.check(deviceID, $0) } }
    }

    private static let replyTimeout = Duration.seconds(5)
    /// The interval between two checks that usbmuxd still responds.
    private static let checkInterval = Duration.seconds(2)
    /// The time after which a missing reply is reported in the status. The devices stay listed for `replyTimeout`, so a
    /// busy usbmuxd does not lose them.
    private static let slowReplyThreshold = Duration.seconds(1)

    /// All events since `init`, for a single consumer; ends with `run()`. The buffer is unbounded, because events come
    /// only from plugging, unplugging and restarts.
    package nonisolated let events: AsyncStream<DeviceEvent>

    nonisolated let address: ServerAddress
    private nonisolated let client: any UsbmuxClient
    private nonisolated let listClient: NativeUsbmuxClient
    private nonisolated let clock = ContinuousClock()
    private nonisolated let logger: Logger
    private nonisolated let continuation: AsyncStream<DeviceEvent>.Continuation

    private var session: UsbmuxdInstance?
    private var table = DeviceTable()
    private var isReady = false
    /// The time of the request that usbmuxd has not answered yet.
    private var requestedAt: ContinuousClock.Instant?
    /// The number of runs of usbmuxd that were connected.
    private var sessionCount = 0
    /// The reason why there is no session; nil before the first attempt.
    private var lastError: UsbmuxError?

    /// - Parameters:
    ///   - address: The address of usbmuxd, which may be absent.
    ///   - client: The client that opens the dialer's streams. Must use the same address.
    ///   - logger: The logger.
    package init(address: ServerAddress, client: any UsbmuxClient, logger: Logger) {
        self.address = address
        self.client = client
        self.logger = logger
        listClient = NativeUsbmuxClient(address: address)
        (events, continuation) = AsyncStream.makeStream(bufferingPolicy: .unbounded)
    }

    /// The reachable devices, sorted by UDID; empty while usbmuxd is absent.
    package func devices() -> [Device] { table.devices }

    /// Plans streams to the devices that this monitor sees.
    package nonisolated var planner: UsbmuxPlanner { UsbmuxPlanner(monitor: self, client: client) }

    /// Connects to usbmuxd again after each of its ends, until the service group shuts down.
    package func run() async throws {
        await cancelWhenGracefulShutdown { await self.runSessions() }
        continuation.finish()
    }

    /// The status of the USB source.
    package func status() -> SourceStatus {
        if let requestedAt, session != nil, requestedAt.duration(to: .now) > Self.slowReplyThreshold {
            return SourceStatus(silentFor: requestedAt.duration(to: .now), at: address)
        }
        return SourceStatus(
            of: address,
            error: session == nil ? lastError : nil,
            deviceCount: isReady ? table.devices.count : nil
        )
    }

    /// Returns the handle of a device that can be reached now.
    ///
    /// - Throws: `DialError` with the reason `usbmuxdAbsent` or `deviceAbsent`.
    @discardableResult
    package func handle(of udid: UDID) throws(DialError) -> Handle {
        guard let session else {
            let why = lastError?.description ?? "usbmuxd has not been reached yet; try again in a moment"
            throw DialError(.usbmuxdAbsent, "phone \(udid) cannot be reached: \(why)")
        }
        guard let record = table.record(of: udid) else { throw DialError.absent(udid) }
        return Handle(deviceID: record.deviceID, session: session)
    }

    /// Returns whether usbmuxd has the record of a pairing with a device; nil if it does not tell.
    nonisolated func isPaired(_ udid: UDID) async -> Bool? { await listClient.hasPairRecord(of: udid) }

    /// Returns true if usbmuxd shows the device.
    func isConnected(_ udid: UDID) -> Bool { table.record(of: udid) != nil }

    private func runSessions() async {
        let watcher = address.path.map { DirectoryWatcher(path: $0) }
        var backoff = Backoff.reconnecting
        while !Task.isCancelled {
            // Arm the watch before the attempt, so that a socket created after a failed attempt is not missed.
            let hasChanged = watcher?.arm()
            if hasChanged == true { backoff.reset() }
            let before = sessionCount
            do {
                try await listen()
            } catch let error as UsbmuxError {
                logUnavailable(error, isLoss: sessionCount != before)
            } catch {
                // Cancelled: the loop ends.
            }
            let active = hasChanged == nil ? nil : watcher
            if await backoff.wait(orChangeOf: active, clock: clock) { backoff.reset() }
        }
    }

    /// Handles one run of usbmuxd from Listen to its end. Always ends by throwing.
    private func listen() async throws {
        let session = try await withTimeout(Self.replyTimeout, request: "Listen") { [address] in
            let socket = try await address.connectToUsbmuxd()
            var usbmuxd = UsbmuxConnection(over: socket.number)
            guard try await usbmuxd.request(.listen) == .result(.ok) else {
                throw UsbmuxError.malformedMessage("an answer to Listen that is not a result")
            }
            return UsbmuxdInstance(listeningOn: socket, path: address.path)
        }
        begin(session)
        defer { finish(session) }
        try await withThrowingTaskGroup(of: Void.self) { group in
            group.addTask { try await self.readEvents(of: session) }
            group.addTask { try await self.reconcile(session) }
            group.addTask { await session.answerChecks(list: self.listClient.listDevices) }
            defer { group.cancelAll() }
            try await group.next()
        }
    }

    private func begin(_ session: UsbmuxdInstance) {
        self.session = session
        table = DeviceTable()
        isReady = false
        requestedAt = nil
        lastError = nil
        sessionCount += 1
        logger.info("connected to usbmuxd", metadata: ["address": "\(address)"])
    }

    private func finish(_ session: UsbmuxdInstance) {
        session.close()
        self.session = nil
        table = DeviceTable()
        isReady = false
        continuation.yield(.usbmuxdLost)
    }

    /// Logs once that usbmuxd is absent, and again only if the error gets worse. usbmuxd stops and starts with the
    /// devices.
    private func logUnavailable(_ error: UsbmuxError, isLoss: Bool) {
        let known = lastError
        lastError = error
        guard !Task.isCancelled else { return }
        var metadata: Logger.Metadata = ["address": "\(address)"]
        if isLoss {
            metadata["reason"] = "\(error.isDisconnect ? "it stopped" : error.description)"
            metadata["hint"] = "none if the last phone was unplugged, else `systemctl status usbmuxd`"
            logger.notice("lost the connection to usbmuxd", metadata: metadata)
        } else if known == nil || known != error && !error.isDisconnect {
            let status = SourceStatus(of: address, error: error, deviceCount: nil)
            metadata["reason"] = "\(status.detail)"
            if let hint = status.hint { metadata["hint"] = "\(hint)" }
            logger.notice("usbmuxd is not available", metadata: metadata)
        }
    }

    /// Reads the events that usbmuxd sends to a listener, until usbmuxd closes the connection.
    private nonisolated func readEvents(of session: UsbmuxdInstance) async throws {
        var usbmuxd = UsbmuxConnection(over: session.number)
        while true {
            let message = try await usbmuxd.receive(for: "Listen")
            await apply(try UsbmuxReply(message), in: session)
        }
    }

    private func apply(_ reply: UsbmuxReply, in session: UsbmuxdInstance) {
        guard session === self.session else { return }
        switch reply {
        case .attached(let record): publish(table.attach(record, at: Date.now))
        case .detached(let deviceID): publish(table.detach(deviceID))
        case .paired(let deviceID): if let udid = table.udid(of: deviceID) { publish([.paired(udid)]) }
        case .other(let kind):
            logger.debug("ignored a message of usbmuxd", metadata: ["message": "\(SanitizedText(kind))"])
        case .result, .devices, .pairRecord: break
        }
    }

    /// Merges the device list with the events, then requests the list periodically to detect a hung usbmuxd.
    private nonisolated func reconcile(_ session: UsbmuxdInstance) async throws {
        while true {
            await expectList(in: session, at: .now)
            var list: [UsbmuxDeviceRecord] = []
            do {
                list = try await listClient.listDevices()
            } catch let error as UsbmuxError {
                if case .timedOut = error { throw error }
                // Listen eventually reports all devices. Without the list, the end of the initial devices is unknown.
                logger.notice("cannot list devices", metadata: ["reason": "\(error)"])
            }
            // A list from another run of usbmuxd is not valid for this one.
            guard session.isAlive else { throw UsbmuxError.closed(request: "Listen") }
            await apply(list, in: session)
            try await clock.sleep(for: Self.checkInterval)
        }
    }

    private func expectList(in session: UsbmuxdInstance, at now: ContinuousClock.Instant) {
        guard session === self.session else { return }
        requestedAt = now
        table.expectList()
    }

    private func apply(_ list: [UsbmuxDeviceRecord], in session: UsbmuxdInstance) {
        guard session === self.session else { return }
        requestedAt = nil
        publish(table.reconcile(with: list, at: Date.now))
        if !isReady {
            isReady = true
            continuation.yield(.usbmuxdReady)
        }
    }

    private func publish(_ events: [DeviceEvent]) {
        for event in events {
            logger.debug("device event", metadata: ["event": "\(event)"])
            continuation.yield(event)
        }
    }
}

/// An event of `DeviceMonitor`; events come in order.
package enum DeviceEvent: Hashable, Sendable {
    /// A device was connected, or is reported again after usbmuxd came back.
    case attached(Device)
    case detached(Device)
    /// A person allowed this machine on the device.
    case paired(UDID)
    /// usbmuxd stopped. No device can be reached now; whether one was unplugged is unknown.
    case usbmuxdLost
    /// usbmuxd is running and has reported all connected devices. All other devices have been unplugged.
    case usbmuxdReady
}
