package import Model
package import Registry
import ServiceLifecycle

/// The phones of all hosts of the team, for lists; those of this host without a team.
///
/// Tunnels, the usbmuxd server and the scanner of ports use the attached ones, because they reach only attached phones.
package actor TeamDevices: DeviceListing, Service {
    private let local: any DeviceListing
    private let hosts: ListedHosts
    /// The newest list of `local`.
    private var attached: [Device] = []
    private var remote: [HostName: [Device]] = [:]
    private var published: [Device] = []
    private let subscribers = Broadcast<[Device]>(slow: .keepsNewest(1))

    package init(local: any DeviceListing, hosts: ListedHosts) {
        self.local = local
        self.hosts = hosts
    }

    package func devices() async -> [Device] {
        // Without a team, a phone is listed as soon as this host knows it.
        hosts.own == nil ? await local.devices() : merged
    }

    package func deviceLists() -> AsyncStream<[Device]> { subscribers.subscribe(startingWith: merged) }

    /// Sets the phones that another host publishes. An empty list removes them.
    package func set(_ devices: [Device], of host: HostName) {
        remote[host] = devices.isEmpty ? nil : devices
        publish()
    }

    /// Removes the phones of all other hosts.
    package func removeAll() {
        remote = [:]
        publish()
    }

    /// Follows the attached phones and the states of the hosts until graceful shutdown.
    package func run() async throws {
        await cancelWhenGracefulShutdown { [self] in
            await withDiscardingTaskGroup { group in
                group.addTask { [self] in
                    for await _ in hosts.lists() { await publish() }
                }
                // The list ends when its source stops. A service that ends before the shutdown would stop the broker.
                for await devices in await local.deviceLists() { await setAttached(devices) }
            }
        }
        subscribers.finish()
    }

    private func setAttached(_ devices: [Device]) {
        attached = devices
        publish()
    }

    private var merged: [Device] {
        guard let own = hosts.own else { return attached }
        let states = Dictionary(hosts.others.map { ($0.name, $0) }) { $1 }
        return attached.merged(
            on: own,
            with: remote.map { HostDevices(host: states[$0.key] ?? HostStatus(name: $0.key), devices: $0.value) }
        )
    }

    private func publish() {
        let devices = merged
        guard devices != published else { return }
        published = devices
        subscribers.send(devices)
    }
}
