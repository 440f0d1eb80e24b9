import FoundationEssentials
package import Logging
package import Model
import ServiceLifecycle
package import SystemIO

/// The attached devices with the names that they report.
///
/// Asks every device once per attachment. A device that is locked or still starting is asked again, with pauses. A
/// device that has no lockdownd stays without a name. usbmuxd is asked for the pairing at each attachment and after each
/// pairing.
package actor DeviceDirectory: Service {
    /// The attached devices at one time.
    package struct Snapshot: Hashable, Sendable {
        /// Sorted by UDID. The values that a device reported in this run are remembered by its UDID.
        package let devices: [Device]
        /// The devices that were asked for the first time less than `gracePeriod` ago and have not answered yet.
        ///
        /// An endpoint gets its ID when it is first listed. A caller that wants the name in the ID waits until the
        /// device is not in this set.
        package let unanswered: Set<UDID>
    }

    /// The time that a device has to report its name before its endpoints are listed without it: 250 ms.
    static let gracePeriod = Duration.milliseconds(250)

    /// A snapshot after each event of the monitor and after each answer, for a single consumer; ends with `run()`.
    package nonisolated let snapshots: AsyncStream<Snapshot>

    private nonisolated let monitor: DeviceMonitor
    private nonisolated let client: LockdownClient
    private nonisolated let clock: any Clock<Duration>
    private nonisolated let logger: Logger
    private nonisolated let continuation: AsyncStream<Snapshot>.Continuation
    private var devices: [Device] = []
    private var values: [UDID: LockdownValues] = [:]
    private var unanswered: Set<UDID> = []
    /// The devices that were not unlocked since their start.
    private var locked: Set<UDID> = []
    /// The attached devices of which usbmuxd said if it has a pair record.
    private var paired: [UDID: Bool] = [:]

    /// - Parameters:
    ///   - monitor: The source of the devices. The directory consumes its events.
    ///   - dialer: Opens the streams to lockdownd.
    ///   - logger: The logger.
    ///   - clock: The clock for timeouts and pauses.
    package init(
        of monitor: DeviceMonitor,
        dialer: any Dialer,
        logger: Logger,
        clock: any Clock<Duration> = ContinuousClock()
    ) {
        self.monitor = monitor
        client = LockdownClient(dialer: dialer, clock: clock)
        self.clock = clock
        self.logger = logger
        (snapshots, continuation) = AsyncStream.makeStream(bufferingPolicy: .unbounded)
    }

    /// Asks each attached device, until the monitor ends or the service group shuts down.
    package func run() async throws {
        await cancelWhenGracefulShutdown {
            await withDiscardingTaskGroup { group in
                for await event in self.monitor.events {
                    if case .paired(let udid) = event { group.addTask { await self.readPairing(of: udid) } }
                    for device in await self.update() {
                        group.addTask { await self.resolve(device) }
                        group.addTask { await self.endGracePeriod(of: device) }
                        group.addTask { await self.readPairing(of: device.udid) }
                    }
                }
                group.cancelAll()
            }
        }
        continuation.finish()
    }

    /// Reads the monitor's list and returns the devices that have not been asked since they were attached.
    private func update() async -> [Device] {
        let known = Set(askable.map(\.id))
        devices = await monitor.devices()
        let new = askable.filter { !known.contains($0.id) }
        unanswered.formIntersection(devices.map(\.udid))
        locked.formIntersection(devices.map(\.udid))
        paired = paired.filter { isAttached($0.key) }
        unanswered.formUnion(new.map(\.udid).filter { values[$0] == nil })
        publish()
        return new
    }

    /// One attachment of each device, because a device on the cable and on the network has one lockdownd.
    private var askable: some Collection<Device> {
        Dictionary(devices.map { ($0.udid, $0) }) { first, _ in first }.values
    }

    private func publish() {
        let described = devices.map { device in
            var device = device
            if locked.contains(device.udid) { device.state = .locked }
            device.isPaired = paired[device.udid]
            let values = values[device.udid]
            device.name = values?.name
            device.productType = values?.productType
            device.productVersion = values?.productVersion
            return device
        }
        continuation.yield(Snapshot(devices: described, unanswered: unanswered))
    }

    /// Asks a device until it answers, refuses or is detached.
    private nonisolated func resolve(_ device: Device) async {
        var backoff = Backoff(from: .seconds(1), to: .seconds(60))
        while await isAttached(device) {
            do {
                return await record(try await client.values(of: device.udid), of: device)
            } catch {
                logger.debug("no name of a phone", metadata: ["udid": "\(device.udid)", "reason": "\(error)"])
                await markAnswered(device.udid, isLocked: error as? LockdownError == .locked)
                if let error = error as? LockdownError, !error.isTransient { return }
            }
            do { try await backoff.wait(clock: clock) } catch { return }
        }
    }

    private func readPairing(of udid: UDID) async {
        let isPaired = await monitor.isPaired(udid)
        guard isAttached(udid), let isPaired, paired[udid] != isPaired else { return }
        paired[udid] = isPaired
        publish()
    }

    private nonisolated func endGracePeriod(of device: Device) async {
        try? await clock.sleep(for: Self.gracePeriod)
        await markAnswered(device.udid)
    }

    private func isAttached(_ device: Device) -> Bool { devices.contains { $0.id == device.id } }
    private func isAttached(_ udid: UDID) -> Bool { devices.contains { $0.udid == udid } }

    private func record(_ values: LockdownValues, of device: Device) {
        let isUnanswered = unanswered.remove(device.udid) != nil
        let wasLocked = locked.remove(device.udid) != nil
        guard isUnanswered || wasLocked || self.values[device.udid] != values else { return }
        self.values[device.udid] = values
        publish()
    }

    private func markAnswered(_ udid: UDID, isLocked: Bool = false) {
        let isNew = isLocked && isAttached(udid) && locked.insert(udid).inserted
        if unanswered.remove(udid) != nil || isNew { publish() }
    }
}
