import Apps
import Devices
import Discovery
import Logging
import Model
import SystemIO

/// The sources of sightings; each is optional.
struct DiscoverySources: Sendable {
    let bonjour: BonjourSource?
    /// The iPhones; nil if devices are disabled.
    let devices: DeviceMonitor?
    /// The Android phones; nil if devices or adb are disabled.
    let adb: ADBDeviceMonitor?
    private let connectionLimit: FairLimiter<UDID>
    /// The status of adb where it has no monitor.
    private let adbOff: SourceStatus

    /// Creates the sources enabled in the configuration.
    ///
    /// - Throws: `ConfigurationError.badAddress`.
    init(_ startup: Startup) throws {
        let (configuration, environment, logger) = (startup.configuration, startup.environment, startup.logger)
        bonjour =
            configuration.discovery.enabled
            ? BonjourSource(
                options: DiscoveryOptions(
                    types: configuration.discovery.types.filter { $0 != .patchbay } + [.patchbay],
                    allowed: configuration.discovery.interfaces,
                    denied: configuration.discovery.denyInterfaces
                ),
                logger: logger
            ) : nil
        let connectionLimit = FairLimiter<UDID>(limit: configuration.devices.maxStreams)
        self.connectionLimit = FairLimiter(limit: configuration.devices.maxStreams)
        guard configuration.devices.enabled else {
            (devices, adb, adbOff) = (nil, nil, .off("adb", by: "devices.enabled = false"))
            return
        }
        (adb, adbOff) = Self.adb(configuration, environment, logger)
        let address = try configuration.usbmuxdAddress(environment)
        let client: any UsbmuxClient =
            switch configuration.devices.client {
            case .native: NativeUsbmuxClient(address: address, connectionLimit: connectionLimit)
            case .libusbmuxd: LibusbmuxdClient(address: address, connectionLimit: connectionLimit)
            }
        devices = DeviceMonitor(address: address, client: client, logger: logger)
    }

    /// The Android phones, and the status of adb if there is no such source.
    private static func adb(
        _ configuration: Configuration,
        _ environment: [String: String],
        _ logger: Logger
    ) -> (ADBDeviceMonitor?, SourceStatus) {
        do throws(ADBError) {
            let off = SourceStatus.off("adb", by: "devices.adb = \"off\"")
            guard let address = try configuration.devices.adb.address(environment) else { return (nil, off) }
            let monitor = ADBDeviceMonitor(
                address: address,
                isRequired: configuration.devices.adb != .auto,
                startsServer: configuration.devices.adbStart,
                logger: logger
            )
            return (monitor, off)
        } catch {
            // A variable that is meant for other programs must not stop the broker.
            return (nil, SourceStatus(name: "adb", state: .missing, detail: "\(error)", hint: "set devices.adb"))
        }
    }

    /// Plans streams to phones; nil if devices are disabled.
    var planner: DevicePlanner? {
        devices.map { devices in
            DevicePlanner(
                usbmuxd: devices.planner,
                adb: adb.map { ADBPlanner($0, connectionLimit: connectionLimit) }
            )
        }
    }

    /// Throws unless a phone is attached; nil if devices are disabled.
    var requireDevice: ApprovedRouteResolver.DeviceCheck? {
        guard let devices else { return nil }
        return { [adb] udid throws(DialError) in
            switch udid.platform {
            case .ios: try await devices.handle(of: udid)
            case .android:
                guard let adb else { throw .adbOff }
                try await adb.transport(of: udid)
            }
        }
    }

    func statuses() async -> [SourceStatus] {
        [
            await bonjour?.status() ?? .off("bonjour", by: "discovery.enabled = false"),
            await devices?.status() ?? .off("usbmuxd", by: "devices.enabled = false"),
            await adb?.status() ?? adbOff,
        ]
    }
}

extension SourceStatus {
    fileprivate static func off(_ name: String, by key: String) -> SourceStatus {
        SourceStatus(name: name, state: .off, detail: "turned off by \(key)")
    }
}
