import Devices
import Model
import Probes
import ServiceLifecycle
import Tunnels

/// Carries what happens at the cable to everybody whom it concerns.
struct PhoneFollower: Service {
    let source: DeviceSource
    let phones: PhoneList
    let ports: PhonePorts
    let tunnels: TunnelTable

    func run() async throws {
        for await _ in source.events.cancelOnGracefulShutdown() {
            let devices = await source.devices()
            await phones.set(devices)
            ports.set(phones: Set(devices.map(\.udid)))
            await tunnels.reconsider()
        }
        await phones.finish()
    }
}
