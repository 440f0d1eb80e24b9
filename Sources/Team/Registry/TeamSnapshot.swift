package import AccessControl
package import FoundationEssentials
package import Model

/// The members, hosts, phones and claims of the team at one time. The endpoints are in the registry of the broker.
package struct TeamSnapshot: Hashable, Sendable {
    package private(set) var members: [HostName: TeamMember] = [:]
    /// The running brokers of other hosts.
    package private(set) var hosts: [HostName: TeamHost] = [:]
    package private(set) var claims: [LeaseTarget: TeamClaim] = [:]
    /// The time since which all other values may be outdated. Nil while they are current.
    package private(set) var staleSince: Date?
    /// The last failure to read the team registry; nil while it is followed.
    package internal(set) var failure: TeamError?
    /// The entries that this version of Patchbay cannot read.
    package internal(set) var unreadableKeys: Set<TeamKey> = []
    private var phones: [UDID: [HostName: [Device.Transport: Device]]] = [:]

    package init(staleSince: Date?) { self.staleSince = staleSince }

    /// The state of the knowledge about another host.
    package func status(of host: HostName) -> HostStatus { HostStatus(name: host, staleSince: staleSince) }

    /// The routes to a phone through other hosts, in the order of `DeviceRoute.precedes`.
    package func routes(to udid: UDID) -> [DeviceRoute] {
        let routes = (phones[udid] ?? [:]).flatMap { host, devices in
            devices.keys.map { DeviceRoute(host: status(of: host), transport: $0) }
        }
        return routes.sorted { $0.precedes($1, on: nil) }
    }

    /// The phones at other hosts, sorted by UDID and host, without `routes`.
    package var devices: [(device: Device, host: HostName)] {
        phones.sorted { $0.key < $1.key }.flatMap { _, hosts in
            hosts.sorted { $0.key < $1.key }.flatMap { host, devices in
                devices.values.sorted { $0.transport == .usb && $1.transport != .usb }.map { ($0, host) }
            }
        }
    }

    mutating func apply(_ event: TeamEvent) {
        switch event {
        case .member(let member): members[member.name] = member
        case .memberRemoved(let name): members[name] = nil
        case .host(let host): hosts[host.name] = host
        case .hostRemoved(let name): hosts[name] = nil
        case .device(let device, let host):
            phones[device.udid, default: [:]][host, default: [:]][device.transport] = device
        case .deviceRemoved(let udid, let transport, let host):
            phones[udid]?[host]?[transport] = nil
            if phones[udid]?[host]?.isEmpty == true { phones[udid]?[host] = nil }
            if phones[udid]?.isEmpty == true { phones[udid] = nil }
        case .claim(let target, let claim): claims[target] = claim
        case .claimRemoved(let target): claims[target] = nil
        case .stale(let since): staleSince = since
        case .endpoint, .endpointRemoved: break
        }
    }
}
