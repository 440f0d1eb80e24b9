/// The phones of a team: one entry for each phone, although several hosts may show it.
extension Sequence<Device> {
    /// Merges the phones of this host with those of the other hosts, by UDID.
    ///
    /// A phone that is attached here keeps its entries, one for each transport. A phone that is attached elsewhere has
    /// one entry, made of its best route. Every entry has all routes of the phone, in the order of `DeviceRoute.precedes`.
    /// A phone that is not ready has no route.
    ///
    /// - Parameters:
    ///   - own: The name of this host.
    ///   - others: The phones of the other hosts.
    /// - Returns: The phones, in the order of UDID and transport.
    package func merged(on own: HostName, with others: [HostDevices]) -> [Device] {
        let here = HostDevices(host: HostStatus(name: own), devices: filter(\.isReady))
        let all = [here] + others.filter { $0.host.name != own }
        let ways = all.flatMap { host in
            host.devices.map { (route: DeviceRoute(host: host.host, transport: $0.transport), device: $0) }
        }
        let phones = Dictionary(grouping: ways, by: \.device.udid)
        let others = filter { !$0.isReady && phones[$0.udid] == nil }
        let reachable = phones.values.flatMap { ways in
            let sorted = ways.sorted { $0.route.precedes($1.route, on: own) }
            let local = sorted.filter { $0.route.host.name == own }
            return (local.isEmpty ? sorted.prefix(1) : local[...]).map { way in
                var device = way.device
                device.routes = sorted.map(\.route)
                return device
            }
        }
        return (reachable + others).sorted { ($0.udid, $0.transport.rawValue) < ($1.udid, $1.transport.rawValue) }
    }
}

/// The phones that one host of a team publishes.
package struct HostDevices: Hashable, Sendable {
    package let host: HostStatus
    package let devices: [Device]

    package init(host: HostStatus, devices: [Device]) {
        self.host = host
        self.devices = devices
    }
}

extension DeviceRoute {
    /// Returns whether a route is better than another one. The order is this host, current hosts, and stale hosts. Then
    /// USB comes before the network, and the names of hosts decide. `own` is the name of this host; nil if neither route is of this host.
    package func precedes(_ other: DeviceRoute, on own: HostName?) -> Bool {
        func rank(_ route: DeviceRoute) -> Int {
            let (host, transport) = (route.host, route.transport)
            return (host.name == own ? 0 : 4) + (host.staleSince == nil ? 0 : 2) + (transport == .usb ? 0 : 1)
        }
        let (one, two) = (rank(self), rank(other))
        return one == two ? host.name < other.host.name : one < two
    }
}

extension HostStatus: ListItem { package static let listName = "hosts" }
