import AccessControl
import Glibc
import Model
import Registry
import SystemIO
import Tunnels

/// Plans the streams to targets of all hosts of the team. A target of another host is reached through its broker.
struct TeamPlanner: TargetPlanner {
    let local: RoutePlanner
    let endpoints: any EndpointListing
    /// Returns the brokers of the other hosts; nil without a team.
    let brokers: @Sendable () -> HostBrokers?
    let callers: CallerDirectory

    var failureSentence: String { local.failureSentence }

    func snapshot(of target: TunnelTarget, for owner: TunnelOwner) async throws(DialError) -> TargetSnapshot {
        switch target {
        case .endpoint(let id):
            let id = endpoints.hosts?.ownID(of: id) ?? id
            guard let host = id.host else { return try await local.snapshot(of: .endpoint(id), for: owner) }
            try await checkReachable(id, on: host)
            return TargetSnapshot([try plan(to: .endpoint(id.onItsHost), on: host, for: owner)])
        case .device(let route):
            do throws(DialError) { return try await local.snapshot(of: target, for: owner) } catch {
                guard error.reason == .deviceAbsent || error.reason == .usbmuxdAbsent, let brokers = brokers() else {
                    throw error
                }
                // No plan for a client of another host: it asked this broker because the phone was attached here.
                let plans = brokers.watcher.hosts(of: route.udid).compactMap {
                    try? plan(to: target, on: $0, for: owner)
                }
                guard !plans.isEmpty else { throw brokers.lostHost(of: route.udid) ?? error }
                return TargetSnapshot(plans)
            }
        }
    }

    /// Throws unless the endpoint is listed and online. What the team registry says of a host that is stale is not
    /// trusted.
    private func checkReachable(_ id: EndpointID, on host: HostName) async throws(DialError) {
        guard let brokers = brokers(), brokers.members[host] != nil else {
            throw DialError(.forbidden, "the host \(host) was removed from the team, or never belonged to it")
        }
        let endpoint: Endpoint
        do { endpoint = try await endpoints.endpoint(id) } catch { throw DialError(.noRoute, error.description) }
        guard endpoint.state == .offline, brokers.watcher.staleSince == nil else { return }
        throw DialError(.noRoute, "\(id) is offline; the tunnel works again as soon as it is back")
    }

    /// Plans a stream through the broker of another host.
    ///
    /// - Throws: `DialError.forbidden` if the client may not use that broker.
    private func plan(
        to target: TunnelTarget,
        on host: HostName,
        for owner: TunnelOwner
    ) throws(DialError) -> ConnectPlan {
        _ = try callers.caller(of: owner, at: host)
        return ConnectPlan(route: nil) { [brokers, callers] in
            // Asked again for each connection, because the grant or the team may have ended.
            guard let brokers = brokers() else { throw HostBrokers.dialError(.absent(host)) }
            return try await brokers.openStream(to: target, on: host, for: try callers.caller(of: owner, at: host))
        }
    }
}

extension HostBrokers {
    /// Returns the error for a phone that another host listed before; nil for any other phone.
    fileprivate func lostHost(of udid: UDID) -> DialError? {
        guard let host = phones.host(of: udid) else { return nil }
        let reason = watcher.host(host) == nil ? "is offline" : "does not list it any more"
        return DialError(
            .deviceAbsent,
            "phone \(udid) was attached to the host \(host), which \(reason); the tunnel works again as soon as a host "
                + "lists the phone"
        )
    }
}

/// The clients of this broker, as the brokers of other hosts see them.
struct CallerDirectory: Sendable {
    let accessStore: AccessStore

    /// Returns the client that created a tunnel or a stream.
    ///
    /// - Throws: `DialError.forbidden` if its grant has ended.
    func caller(of owner: TunnelOwner, at host: HostName) throws(DialError) -> TeamCaller {
        guard let holder = owner.holder.map({ LeaseHolder(agentKey: $0) }) ?? .user(owner.user ?? geteuid()) else {
            throw DialError(.forbidden, "a client of another host reaches \(host) through its own broker")
        }
        var permissions = Permissions.ofOwner
        var name = holder.name
        if let id = holder.grant {
            guard let grant = accessStore.grants.valid(id) else {
                throw DialError(.forbidden, "the grant \(id) has ended; its tunnels and streams end with it")
            }
            (permissions, name) = (grant.permissions, grant.name)
        }
        return TeamCaller(
            holder: holder.key,
            name: name,
            isAgent: holder.isAgent,
            permissions: permissions.asserted(to: host)
        )
    }
}

extension TeamWatcher {
    /// Returns the hosts that reach a phone: the one that leases the phone, then the others in the order of their
    /// routes.
    fileprivate func hosts(of udid: UDID) -> [HostName] {
        let leasing = claim(of: .device(udid))?.host
        var hosts: [HostName] = []
        for host in routes(to: udid).map(\.host.name) where !hosts.contains(host) {
            hosts.insert(host, at: host == leasing ? 0 : hosts.count)
        }
        return hosts
    }
}
