import AccessControl
import Logging
import Model
import Registry
import ServiceLifecycle

/// Passes the entries of other hosts on to the lists of this broker, and their claims to its leases.
struct TeamEventConsumer: Service {
    let watcher: TeamWatcher
    let endpoints: RemoteEndpoints
    let devices: TeamDevices
    let claims: TeamClaims
    let leases: LeaseService
    let brokers: HostBrokers
    let logger: Logger

    func run() async throws {
        var online: Set<HostName> = []
        for await event in watcher.events.cancelOnGracefulShutdown() {
            log(event, &online)
            await forward(event)
        }
    }

    /// Logs the hosts that go online and offline. A running host changes its entry too, which has no line.
    private func log(_ event: TeamEvent, _ online: inout Set<HostName>) {
        switch event {
        case .host(let host) where online.insert(host.name).inserted:
            logger.info("host online", metadata: ["host": "\(host.name)"])
        case .hostRemoved(let name) where online.remove(name) != nil:
            logger.info("host offline", metadata: ["host": "\(name)"])
        default: break
        }
    }

    private func forward(_ event: TeamEvent) async {
        switch event {
        case .endpoint(let endpoint):
            guard let host = endpoint.id.host else { return }
            endpoints.apply([.put(endpoint, of: host)])
        case .endpointRemoved(let id):
            guard let host = id.host else { return }
            endpoints.apply([.remove(id, of: host)])
        case .device(let device, let host):
            brokers.phones.record(device.udid, on: host)
            await setDevices(of: host)
        case .deviceRemoved(_, _, let host): await setDevices(of: host)
        case .hostRemoved(let name):
            brokers.presence.reportEnd(of: name)
            setHosts()
        case .host, .member, .memberRemoved: setHosts()
        case .stale:
            setHosts()
            // A lease that could not be claimed may be claimed now.
            leases.claimsChanged()
        case .claim(let target, let claim): record(claim, of: target)
        case .claimRemoved(let target): record(nil, of: target)
        }
    }

    private func record(_ claim: TeamClaim?, of target: LeaseTarget) {
        if claims.record(claim, of: target) { leases.claimsChanged() }
    }

    private func setDevices(of host: HostName) async {
        await devices.set(watcher.snapshot.devices.filter { $0.host == host }.map(\.device), of: host)
    }

    private func setHosts() {
        let snapshot = watcher.snapshot
        endpoints.setHosts(snapshot.hosts.keys.map(snapshot.status))
        endpoints.hosts.setMembers(snapshot.staleSince == nil ? Set(snapshot.members.keys) : nil)
    }
}
