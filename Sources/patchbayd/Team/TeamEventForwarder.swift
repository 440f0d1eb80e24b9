import AccessControl
import Model
import Registry
import ServiceLifecycle
import Team

/// Passes the entries of other hosts on to the lists of this broker, and their claims to its leases.
struct TeamEventForwarder: Service {
    let mirror: TeamMirror
    let registry: EndpointRegistry
    let devices: TeamDevices
    let claims: TeamLeaseClaims
    let leases: LeaseService

    func run() async throws {
        for await event in mirror.events.cancelOnGracefulShutdown() { await forward(event) }
    }

    private func forward(_ event: TeamEvent) async {
        switch event {
        case .endpoint(let endpoint):
            guard let host = endpoint.id.host else { return }
            await registry.apply([.put(endpoint, of: host)])
        case .endpointRemoved(let id):
            guard let host = id.host else { return }
            await registry.apply([.remove(id, of: host)])
        case .device(_, let host), .deviceRemoved(_, _, let host):
            await devices.set(mirror.snapshot.devices.filter { $0.host == host }.map(\.device), of: host)
        case .host, .hostRemoved, .member, .memberRemoved: await setHosts()
        case .stale:
            await setHosts()
            // A lease that could not be claimed may be claimed now.
            leases.claimsChanged()
        case .claim(let target, let claim):
            claims.check(target, claim)
            setClaim(claim, of: target)
        case .claimRemoved(let target): setClaim(nil, of: target)
        }
    }

    private func setClaim(_ claim: TeamClaim?, of target: TeamClaimTarget) {
        if claims.set(claim, of: target) { leases.claimsChanged() }
    }

    private func setHosts() async {
        let snapshot = mirror.snapshot
        await registry.setHosts(snapshot.hosts.keys.map(snapshot.status))
        await registry.setMembers(snapshot.staleSince == nil ? Set(snapshot.members.keys) : nil)
    }
}
