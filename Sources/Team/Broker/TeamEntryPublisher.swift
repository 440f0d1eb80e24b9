import Model
import Registry
import ServiceLifecycle

/// Publishes this host, its endpoints and its attached phones in the registry of the team. A phone that is not ready is
/// no way to an app, and is shown by its own host only.
struct TeamEntryPublisher: Service {
    let publisher: TeamPublisher
    let registry: EndpointRegistry
    let attachedDevices: any DeviceListing
    /// Returns the entry of this host, with its addresses now.
    let host: @Sendable () -> TeamHost
    var clock: any Clock<Duration> = ContinuousClock()

    /// The time between two readings of this host's addresses.
    private static let hostInterval = Duration.seconds(10)

    func run() async throws {
        await cancelWhenGracefulShutdown {
            var devices = await attachedDevices.devices().filter(\.isReady)
            let endpoints = await registry.endpoints
            publisher.setEntries(endpoints: endpoints, devices: devices)
            await withDiscardingTaskGroup { group in
                group.addTask { await publishHost() }
                group.addTask { await publishEndpoints(known: Set(endpoints.map(\.id))) }
                for await list in await attachedDevices.deviceLists().map({ $0.filter(\.isReady) }) {
                    publish(list, before: devices)
                    devices = list
                }
                group.cancelAll()
            }
        }
    }

    private func publishHost() async {
        // The machine may get an address after the start of the broker (DHCP), or another one later.
        repeat { publisher.setHost(host()) } while (try? await clock.sleep(for: Self.hostInterval)) != nil
    }

    /// Publishes the changes of the endpoints until the task is cancelled.
    ///
    /// - Parameter known: The IDs of the published endpoints.
    func publishEndpoints(known: Set<EndpointID>) async {
        var known = known
        // The team registry ends the stream of a slow subscriber. The new list lacks endpoints that were removed
        // meanwhile.
        while !Task.isCancelled {
            let (endpoints, changes) = await registry.changes()
            let listed = Set(endpoints.map(\.id))
            for id in known.subtracting(listed) { publisher.remove(id) }
            for endpoint in endpoints { publisher.put(endpoint) }
            known = listed
            for await change in changes {
                if change.kind == .removed {
                    known.remove(change.endpoint.id)
                    publisher.remove(change.endpoint.id)
                } else {
                    known.insert(change.endpoint.id)
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
