import Model
import Registry
import ServiceLifecycle
import Team

/// Publishes the endpoints and the attached phones of this host in the registry of the team.
struct TeamEntryPublisher: Service {
    let publisher: TeamPublisher
    let registry: EndpointRegistry
    let attachedDevices: AttachedDevices

    func run() async throws {
        await cancelWhenGracefulShutdown {
            var devices = await attachedDevices.devices()
            publisher.setEntries(endpoints: await registry.localEndpoints, devices: devices)
            await withDiscardingTaskGroup { group in
                group.addTask { await publishEndpoints() }
                for await list in await attachedDevices.deviceLists() {
                    publish(list, before: devices)
                    devices = list
                }
                group.cancelAll()
            }
        }
    }

    private func publishEndpoints() async {
        // The registry ends the stream of a slow subscriber.
        while !Task.isCancelled {
            let (endpoints, changes) = await registry.localChanges()
            for endpoint in endpoints { publisher.put(endpoint) }
            for await change in changes {
                if change.kind == .removed {
                    publisher.remove(change.endpoint.id)
                } else {
                    publisher.put(change.endpoint)
                }
            }
        }
    }

    private func publish(_ devices: [Device], before: [Device]) {
        for device in before where !devices.contains(where: { $0.isSameEntry(as: device) }) {
            publisher.remove(device.udid, device.transport)
        }
        for device in devices { publisher.put(device) }
    }
}

extension Device {
    fileprivate func isSameEntry(as other: Device) -> Bool { udid == other.udid && transport == other.transport }
}
