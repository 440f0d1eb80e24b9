import Apps
import Devices
import Logging
import Model
import Registry
import ServiceLifecycle
import Tunnels

/// Tells the parts that use phones which ones are attached.
struct DeviceListUpdater: Service {
    let source: DeviceDirectory
    let registry: EndpointRegistry
    let attachedDevices: AttachedDevices
    let ports: DevicePortScanner
    let tunnels: TunnelTable
    let logger: Logger

    func run() async throws {
        var known: [UDID: Device] = [:]
        for await snapshot in source.snapshots.cancelOnGracefulShutdown() {
            let devices = snapshot.devices
            let attached = Dictionary(devices.map { ($0.udid, $0) }) { one, _ in one }
            for (udid, device) in attached where known[udid] == nil { log("phone plugged in", device) }
            for (udid, device) in known where attached[udid] == nil { log("phone unplugged", device) }
            known = attached
            await registry.setDeviceNames(attached.compactMapValues(\.name))
            await attachedDevices.set(devices)
            // The ID of an endpoint contains the name of the device, so the ports are probed after the answer.
            ports.set(devices: Set(devices.map(\.udid)).subtracting(snapshot.unanswered))
            await tunnels.refreshTargets()
        }
        await attachedDevices.finish()
    }

    private func log(_ message: Logger.Message, _ device: Device) {
        logger.info(message, metadata: ["udid": "\(device.udid)"])
    }
}
