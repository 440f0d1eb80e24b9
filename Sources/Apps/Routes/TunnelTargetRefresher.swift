import Model
package import Registry
import ServiceLifecycle
package import Tunnels

/// Refreshes the tunnels' targets after changes of the list, and adds advertised ports to the device port scanner.
package struct TunnelTargetRefresher: Service {
    private let list: any EndpointListing
    private let registry: EndpointRegistry
    private let tunnels: TunnelTable
    private let ports: DevicePortScanner?

    /// - Parameters:
    ///   - list: The endpoints of all hosts, because a tunnel may lead to another one.
    ///   - registry: The endpoints of this host.
    ///   - tunnels: The tunnels.
    ///   - ports: Scans the ports of phones; nil if devices are disabled in the configuration.
    package init(
        list: any EndpointListing,
        registry: EndpointRegistry,
        tunnels: TunnelTable,
        ports: DevicePortScanner?
    ) {
        (self.list, self.registry, self.tunnels, self.ports) = (list, registry, tunnels, ports)
    }

    package func run() async throws {
        try? await cancelWhenGracefulShutdown {
            // The stream of a slow subscriber ends. The next subscription begins with the complete list.
            while !Task.isCancelled {
                let (_, changes) = await list.changes(after: nil)
                await refresh()
                for await change in changes {
                    // Several queued changes need only one refresh.
                    guard await list.lastChangeRevision == change.revision else { continue }
                    await refresh()
                }
                try Task.checkCancellation()
            }
        }
    }

    private func refresh() async {
        await tunnels.refreshTargets()
        guard let ports else { return }
        // Only ports of approved adverts are used. Otherwise any advert could select ports to probe on every phone.
        // A Dart VM service and an OpenAgents server must not get the requests that the scanner sends.
        let scanned = await registry.endpoints.filter { $0.kind != .dartVM && $0.kind != .openagents }
        let advertised = scanned.flatMap(\.approvedRoutes).filter { route in
            route.route.machine != nil && !route.route.isInbound
        }
        ports.addPorts(Set(advertised.map(\.port)))
    }
}
