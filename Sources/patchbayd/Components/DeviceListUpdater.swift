import Apps
import Devices
import Logging
import Model
import Registry
import ServiceLifecycle
import SystemIO
import Tunnels

/// Tells the parts that use phones which ones are attached.
struct DeviceListUpdater: Service {
    /// The snapshots of each source.
    let sources: [AsyncStream<DeviceDirectory.Snapshot>]
    let registry: EndpointRegistry
    let attachedDevices: AttachedDevices
    let ports: DevicePortScanner
    let devToolsSockets: DevToolsSocketMonitor?
    let tunnels: TunnelTable
    let logger: Logger
    /// Limits the lines about phones that come and go again and again.
    private let lines = LineLimiter<UDID>(window: .seconds(60))

    func run() async throws {
        let (changes, continuation) = AsyncStream.makeStream(of: (source: Int, DeviceDirectory.Snapshot).self)
        await cancelWhenGracefulShutdown {
            await withTaskGroup(of: Void.self) { group in
                group.addTask { await update(changes) }
                group.addTask { await lines.reportOmitted(clock: ContinuousClock()) { _ in } }
                for (number, snapshots) in sources.enumerated() {
                    group.addTask { for await snapshot in snapshots { continuation.yield((number, snapshot)) } }
                }
            }
        }
        await attachedDevices.finish()
    }

    private func update(_ changes: AsyncStream<(source: Int, DeviceDirectory.Snapshot)>) async {
        var known: [UDID: Device] = [:]
        var snapshots: [Int: DeviceDirectory.Snapshot] = [:]
        for await (source, snapshot) in changes {
            snapshots[source] = snapshot
            let devices = snapshots.values.flatMap(\.devices).sorted { one, other in
                one.udid == other.udid ? one.transport == .usb && other.transport != .usb : one.udid < other.udid
            }
            let unanswered = snapshots.values.flatMap(\.unanswered)
            let attached = Dictionary(devices.map { ($0.udid, $0) }) { one, two in one.isReady ? one : two }
            for (udid, device) in attached where known[udid] == nil { log("phone plugged in", device) }
            for (udid, device) in known where attached[udid] == nil { log("phone unplugged", device) }
            known = attached
            await registry.setDeviceNames(attached.compactMapValues(\.name))
            await attachedDevices.set(devices)
            // The ID of an endpoint contains the name of the device, so the ports are probed after the answer.
            let answered = Set(devices.filter(\.isReady).map(\.udid)).subtracting(unanswered)
            ports.set(devices: answered)
            devToolsSockets?.set(devices: answered)
            await tunnels.refreshTargets()
        }
    }

    private func log(_ message: Logger.Message, _ device: Device) {
        guard lines.admit(device.udid, at: .now) else { return }
        logger.info(message, metadata: ["udid": "\(device.udid)", "state": "\(device.state.rawValue)"])
    }
}
