import Devices
import Discovery
import Logging
import Model

/// Where sightings come from, each of them optional.
struct DiscoverySources: Sendable {
    let bonjour: BonjourSource?
    let devices: DeviceMonitor?

    /// - Throws: `ConfigurationError.badAddress`.
    init(configuration: Configuration, environment: [String: String], logger: Logger) throws {
        bonjour =
            configuration.discovery.enabled
            ? BonjourSource(
                options: DiscoveryOptions(
                    types: configuration.discovery.types,
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
        let budget = UsbmuxConnectionLimit(limit: configuration.devices.maxStreams)
        let client: any UsbmuxClient =
            switch configuration.devices.client {
            case .native: NativeUsbmuxClient(address: address, budget: budget)
            case .libusbmuxd: LibusbmuxdClient(address: address, budget: budget)
            }
        devices = DeviceMonitor(address: address, client: client, logger: logger)
    }

    func statuses() async -> [SourceStatus] {
        [
            await bonjour?.status()
                ?? SourceStatus(name: "bonjour", state: .off, detail: "turned off by discovery.enabled = false"),
            await devices?.status()
                ?? SourceStatus(name: "usb", state: .off, detail: "turned off by devices.enabled = false"),
        ]
    }
}
