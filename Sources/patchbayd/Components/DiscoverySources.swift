import Apps
import Devices
import Discovery
import Logging
import Model
import SystemIO

/// The sources of sightings; each is optional.
struct DiscoverySources: Sendable {
    let bonjour: BonjourSource?
    let devices: DeviceMonitor?

    /// Creates the sources enabled in the configuration.
    ///
    /// - Throws: `ConfigurationError.badAddress`.
    init(configuration: Configuration, environment: [String: String], logger: Logger) throws {
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
        guard configuration.devices.enabled else {
            devices = nil
            return
        }
        let address = try configuration.usbmuxdAddress(environment)
        let connectionLimit = FairLimiter<UDID>(limit: configuration.devices.maxStreams)
        let client: any UsbmuxClient =
            switch configuration.devices.client {
            case .native: NativeUsbmuxClient(address: address, connectionLimit: connectionLimit)
            case .libusbmuxd: LibusbmuxdClient(address: address, connectionLimit: connectionLimit)
            }
        devices = DeviceMonitor(address: address, client: client, logger: logger)
    }

    /// Throws unless a phone is attached; nil if devices are disabled.
    var requireDevice: ApprovedRouteResolver.DeviceCheck? {
        guard let devices else { return nil }
        return { udid throws(DialError) in try await devices.handle(of: udid) }
    }

    func statuses() async -> [SourceStatus] {
        [
            await bonjour?.status()
                ?? SourceStatus(name: "bonjour", state: .off, detail: "turned off by discovery.enabled = false"),
            await devices?.status()
                ?? SourceStatus(name: "usbmuxd", state: .off, detail: "turned off by devices.enabled = false"),
        ]
    }
}
