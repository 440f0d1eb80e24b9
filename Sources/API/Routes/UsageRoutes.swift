import AccessControl
import Apps
import FoundationEssentials
import Model
import Registry

/// `/v1/usage`: the use of phones and grants over a day. A client that is no owner gets its own grant alone.
enum UsageRoutes {
    @Sendable static func show(_ request: APIRequest) async throws -> APIResponse {
        let (services, principal, now) = (request.services, request.principal, Date())
        let own = principal.isOwner ? nil : principal.grant?.id ?? ""
        let counter = services.mcp.activity?.log.usage ?? UsageCounter(startingAt: now)
        let since = counter.since(now)
        let leases = services.leases.uses.filter { $0.end > since && (own == nil || $0.grant == own) }
        func seconds(_ isMeant: (LeaseUse) -> Bool) -> Int {
            Int(leases.filter(isMeant).reduce(0) { $0 + $1.end.timeIntervalSince(max($1.start, since)) }.rounded())
        }
        var devices: [Usage.Device] = []
        if own == nil {
            let names = Dictionary(await services.devices.devices().map { ($0.udid, $0.name) }) { $0 ?? $1 }
            let counts = counter.devices(until: now)
            let udids = Set(counts.keys).union(names.keys).union(leases.compactMap(\.device))
            devices = udids.sorted().map { udid in
                Usage.Device(
                    udid,
                    name: names[udid] ?? nil,
                    leasedSeconds: seconds { $0.device == udid },
                    counts[udid] ?? Usage.Counts()
                )
            }
        }
        let names = Dictionary(await services.accessStore.grants.list.map { ($0.id, $0.name) }) { $1 }
        let counts = counter.grants(until: now)
        let ids = Set(counts.keys).union(leases.compactMap(\.grant)).filter { own == nil || $0 == own }
        let grants = ids.sorted().map { id in
            Usage.Grant(id, name: names[id], leasedSeconds: seconds { $0.grant == id }, counts[id] ?? Usage.Counts())
        }
        let hours = counter.hours(ofGrant: own, until: now)
        return try .json(Usage(since: since, devices: devices, grants: grants, hours: hours))
    }
}
