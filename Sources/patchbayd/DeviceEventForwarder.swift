import Devices
import Logging
import Model
import Probing
import ServiceLifecycle
import Tunnels

/// Carries what happens at the cable to everybody whom it concerns.
struct DeviceEventForwarder: Service {
    let source: DeviceMonitor
    let phones: AttachedDevices
    let ports: DevicePortScanner
    let tunnels: TunnelTable
    let logger: Logger

    func run() async throws {
        var known: [UDID: Device] = [:]
        for await _ in source.events.cancelOnGracefulShutdown() {
            let devices = await source.devices()
            let attached = Dictionary(devices.map { ($0.udid, $0) }) { one, _ in one }
            for (udid, phone) in attached where known[udid] == nil { tell("phone plugged in", phone) }
            for (udid, phone) in known where attached[udid] == nil { tell("phone unplugged", phone) }
            known = attached
            await phones.set(devices)
            ports.set(phones: Set(devices.map(\.udid)))
            await tunnels.reconsider()
        }
        await phones.finish()
    }

    private func tell(_ what: Logger.Message, _ phone: Device) {
        logger.info(what, metadata: ["udid": "\(phone.udid)"])
    }
}
