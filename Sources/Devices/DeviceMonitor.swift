import FoundationEssentials
package import Logging
package import Model
import ServiceLifecycle
import SystemIO

/// Knows which phones are plugged in, as long as it runs.
///
/// It tells usbmuxd to Listen on one connection and asks for the list on another, because Listen does not say where the
/// phones end that were there before. Both are our own code whatever client the streams go through: libusbmuxd's events
/// cannot be used in a daemon (`LibusbmuxdClient` says why), and its list waits behind a phone that does not answer. That
/// usbmuxd is absent is the normal state of a machine without a phone; it is picked up when its socket appears, or within
/// a second.
package actor DeviceMonitor: Service {
    /// How to reach a phone now.
    struct Handle: Sendable {
        let deviceID: UInt32
        /// The run of usbmuxd in which the DeviceID is good.
        let epoch: UsbmuxdSession
        /// Knows what the end of a stream to it was.
        let witness: any LinkChecker
    }

    private static let answerLimit = Duration.seconds(5)
    /// How often usbmuxd is asked for a sign of life, however quiet Listen is.
    private static let checkInterval = Duration.seconds(2)
    /// When a question without an answer is reported. The phones stay for `answerLimit`: a busy usbmuxd loses none.
    private static let patience = Duration.seconds(1)

    /// Everything since `init`, for one consumer; ends with `run()`. Unbounded: an event is a hand at a cable, or a restart.
    package nonisolated let events: AsyncStream<DeviceEvent>

    private nonisolated let address: UsbmuxAddress
    private nonisolated let streams: any UsbmuxClient
    private nonisolated let lister: NativeUsbmuxClient
    private nonisolated let clock: any Clock<Duration>
    private nonisolated let logger: Logger
    private nonisolated let teller: AsyncStream<DeviceEvent>.Continuation

    private var epoch: UsbmuxdSession?
    private var rollCall: DevicePresenceChecker?
    private var table = DeviceTable()
    private var isReady = false
    /// When usbmuxd was asked for what it has not answered yet.
    private var asked: ContinuousClock.Instant?
    /// How many runs of usbmuxd were heard.
    private var served = 0
    /// Why there is no epoch; nil before the first try.
    private var fault: UsbmuxError?

    /// The client, for the dialer's streams, speaks to the same address, where usbmuxd listens or will.
    package init(
        address: UsbmuxAddress,
        client: any UsbmuxClient,
        logger: Logger,
        clock: any Clock<Duration> = ContinuousClock()
    ) {
        self.address = address
        streams = client
        self.clock = clock
        self.logger = logger
        lister = NativeUsbmuxClient(address: address, clock: clock)
        (events, teller) = AsyncStream.makeStream(bufferingPolicy: .unbounded)
    }

    /// The phones that can be reached now, by UDID; none while usbmuxd is absent.
    package func devices() -> [Device] { table.devices }

    /// Opens streams to the phones that this source sees.
    package nonisolated var dialer: UsbmuxDialer { UsbmuxDialer(source: self, client: streams) }

    /// Follows usbmuxd through all its ends and returns, until the service group shuts down.
    package func run() async throws {
        await cancelWhenGracefulShutdown { await self.attend() }
        teller.finish()
    }

    package func status() -> SourceStatus {
        if let asked, epoch != nil, asked.duration(to: .now) > Self.patience {
            return SourceStatus(silentFor: asked.duration(to: .now), at: address)
        }
        return SourceStatus(of: address, fault: epoch == nil ? fault : nil, phones: isReady ? table.devices.count : nil)
    }

    /// Says why a phone cannot be reached now, if it cannot.
    ///
    /// - Throws: `DialError`, `usbmuxdAbsent` or `deviceAbsent`.
    package func find(_ udid: UDID) throws(DialError) { _ = try handle(of: udid) }

    /// - Throws: `DialError`, `usbmuxdAbsent` or `deviceAbsent`.
    func handle(of udid: UDID) throws(DialError) -> Handle {
        guard let epoch, let rollCall else {
            let why = fault?.description ?? "usbmuxd has not been reached yet; try again in a moment"
            throw DialError(.usbmuxdAbsent, "phone \(udid) cannot be reached: \(why)")
        }
        guard let record = table.record(of: udid) else { throw DialError.absent(udid) }
        let witness = DeviceLinkChecker(deviceID: record.deviceID, rollCall: rollCall)
        return Handle(deviceID: record.deviceID, epoch: epoch, witness: witness)
    }

    func shows(_ udid: UDID) -> Bool { table.record(of: udid) != nil }

    private func attend() async {
        let watch = address.path.map { DirectoryWatcher(path: $0) }
        var pause = Backoff()
        while !Task.isCancelled {
            // Before the attempt: a socket that is made after it failed must not be missed.
            if watch?.arm() == true { pause.reset() }
            let before = served
            do {
                try await listen()
            } catch let error as UsbmuxError {
                note(error, isLoss: served != before)
            } catch {
                // Cancelled: the loop ends.
            }
            if await pause.wait(orChangeOf: watch, clock: clock) { pause.reset() }
        }
    }

    /// One run of usbmuxd, from its first word to its last. Always ends by throwing.
    private func listen() async throws {
        let epoch = try await Deadline(limit: Self.answerLimit, clock: clock).run("Listen") { [address, clock] in
            let socket = try await address.connect(clock: clock)
            var wire = UsbmuxConnection(over: socket.number)
            guard case .result(.ok) = try await wire.ask(.listen) else {
                throw UsbmuxError.garbled("an answer to Listen that is no result")
            }
            return UsbmuxdSession(listeningOn: socket)
        }
        let rollCall = DevicePresenceChecker(of: epoch, asking: lister)
        begin(epoch, rollCall)
        defer { finish(epoch, rollCall) }
        try await withThrowingTaskGroup(of: Void.self) { group in
            group.addTask { try await self.follow(epoch) }
            group.addTask { try await self.reconcile(epoch) }
            group.addTask { await rollCall.run() }
            defer { group.cancelAll() }
            try await group.next()
        }
    }

    private func begin(_ epoch: UsbmuxdSession, _ rollCall: DevicePresenceChecker) {
        self.epoch = epoch
        self.rollCall = rollCall
        table = DeviceTable()
        isReady = false
        asked = nil
        fault = nil
        served += 1
        logger.info("usbmuxd is there", metadata: ["address": "\(address)"])
    }

    private func finish(_ epoch: UsbmuxdSession, _ rollCall: DevicePresenceChecker) {
        epoch.end()
        rollCall.close()
        self.epoch = nil
        self.rollCall = nil
        table = DeviceTable()
        isReady = false
        teller.yield(.usbmuxdLost)
    }

    /// Tells once that usbmuxd is away, and again only what is worse than that: its ends and returns are a phone's usual life.
    private func note(_ error: UsbmuxError, isLoss: Bool) {
        let known = fault
        fault = error
        guard !Task.isCancelled else { return }
        var metadata: Logger.Metadata = ["address": "\(address)"]
        if isLoss {
            metadata["reason"] = "\(error.isEnd ? "it stopped" : error.description)"
            metadata["next"] = "none if the last phone was unplugged, else `systemctl status usbmuxd`"
            logger.notice("usbmuxd is lost", metadata: metadata)
        } else if known == nil || known != error && !error.isEnd {
            let status = SourceStatus(of: address, fault: error, phones: nil)
            metadata["reason"] = "\(status.detail)"
            if let remedy = status.remedy { metadata["next"] = "\(remedy)" }
            logger.notice("usbmuxd is not there", metadata: metadata)
        }
    }

    /// Reads what usbmuxd tells unasked, until it hangs up.
    private nonisolated func follow(_ epoch: UsbmuxdSession) async throws {
        var wire = UsbmuxConnection(over: epoch.number)
        while true {
            let message = try await wire.receive(for: "Listen")
            await apply(try UsbmuxReply(message), in: epoch)
        }
    }

    private func apply(_ reply: UsbmuxReply, in epoch: UsbmuxdSession) {
        guard epoch === self.epoch else { return }
        switch reply {
        case .attached(let record): announce(table.attach(record, at: Date.now))
        case .detached(let deviceID): announce(table.detach(deviceID))
        case .other(let kind): logger.debug("nothing to do", metadata: ["message": "\(SanitizedText(kind))"])
        case .result, .devices, .buid: break
        }
    }

    /// Adds the list to what was told, then asks again from time to time, to learn that usbmuxd hangs.
    private nonisolated func reconcile(_ epoch: UsbmuxdSession) async throws {
        while true {
            await expectList(in: epoch, at: .now)
            var list: [UsbmuxDeviceRecord] = []
            do {
                list = try await lister.listDevices()
            } catch let error as UsbmuxError {
                if case .timedOut = error { throw error }
                // What Listen says is complete in the end; only the moment at which it is cannot be told.
                logger.notice("the list of phones failed", metadata: ["reason": "\(error)"])
            }
            // A list that another run of usbmuxd gave is none of this one's.
            guard epoch.isAlive else { throw UsbmuxError.closed(request: "Listen") }
            await apply(list, in: epoch)
            try await clock.sleep(for: Self.checkInterval)
        }
    }

    private func expectList(in epoch: UsbmuxdSession, at now: ContinuousClock.Instant) {
        guard epoch === self.epoch else { return }
        asked = now
        table.expectList()
    }

    private func apply(_ list: [UsbmuxDeviceRecord], in epoch: UsbmuxdSession) {
        guard epoch === self.epoch else { return }
        asked = nil
        announce(table.reconcile(with: list, at: Date.now))
        if !isReady {
            isReady = true
            teller.yield(.usbmuxdReady)
        }
    }

    private func announce(_ events: [DeviceEvent]) {
        for event in events {
            logger.debug("phone", metadata: ["event": "\(event)"])
            teller.yield(event)
        }
    }
}

/// What `DeviceMonitor` tells, in order.
package enum DeviceEvent: Hashable, Sendable {
    /// A phone is there: plugged in, or said again after usbmuxd came back.
    case attached(Device)
    case detached(Device)
    /// usbmuxd ended: no phone can be reached now, and none is known to be unplugged.
    case usbmuxdLost
    /// usbmuxd is there and has named every phone that it has; what it did not name is gone.
    case usbmuxdReady
}
