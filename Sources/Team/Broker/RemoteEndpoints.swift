package import Model
package import Registry
import Synchronization

/// The endpoints of the other hosts of the team, and the log of the changes of all hosts.
package final class RemoteEndpoints: Sendable {
    private struct State {
        var table = RemoteEndpointTable()
        var log: ChangeLog
    }

    package let hosts: ListedHosts
    private let state: Mutex<State>

    /// - Parameters:
    ///   - host: The name of this host; nil without a team.
    ///   - former: Its last name, in a team that it has left.
    ///   - revision: The last revision of the earlier run.
    package init(besides host: HostName? = nil, formerly former: HostName? = nil, startingAfter revision: UInt64 = 0) {
        hosts = ListedHosts(own: host, former: former)
        state = Mutex(State(log: ChangeLog(startingAfter: revision)))
    }

    /// The endpoints that the limit excludes.
    package var refusals: RemoteRefusals { state.withLock(\.table.refusals) }

    /// Applies changes of the team's registry. Changes of this host are ignored, because its own list is newer.
    ///
    /// Every change gets a revision and an event. An endpoint above the limit is counted in `refusals`, and listed as
    /// soon as there is room.
    package func apply(_ changes: [RemoteEndpointChange]) {
        state.withLock { state in
            let others = hosts.others
            for change in changes where change.host != hosts.own {
                for change in state.table.apply(change) {
                    state.log.append(change.kind, RemoteEndpointTable.resolved(change.endpoint, others))
                }
            }
        }
    }

    /// Sets the other hosts of the team, with their states. The endpoints of a host that is missing here stay listed
    /// until `apply` removes them.
    ///
    /// A change is one event of `ListedHosts.lists`, and no event of the endpoints. It has a revision, so that a client
    /// that waits for one gets the list again.
    package func setHosts(_ others: [HostStatus]) {
        // In one step, so that no list has the new revision with the old states.
        state.withLock { state in
            if hosts.setOthers(others) { state.log.skipRevision() }
        }
    }

    /// Begins or ends the membership of this host in a team, with the endpoints of this host. Endpoints of other hosts end.
    ///
    /// Each change of the list is an event, so that subscribers learn the host of each endpoint.
    @Sendable package func setOwn(_ host: HostName?, local: [Endpoint]) {
        state.withLock { state in
            for change in state.table.removeAll() { state.log.append(change.kind, change.endpoint) }
            hosts.setOwn(host)
            for endpoint in local { state.log.append(.changed, hosts.listed(endpoint)) }
        }
    }

    /// Records a change of an endpoint of this host, and returns its revision in the list of all hosts.
    @Sendable package func record(_ kind: EndpointChange.Kind, _ endpoint: Endpoint) -> UInt64 {
        state.withLock { $0.log.append(kind, hosts.listed(endpoint)) }
    }

    /// Ends every stream at shutdown.
    package func finish() {
        state.withLock { $0.log.finish() }
        hosts.finish()
    }
}

/// The endpoints of all hosts of the team: those of this host from its registry, and the others.
package struct TeamEndpoints: EndpointListing {
    private let local: EndpointRegistry
    private let remote: RemoteEndpoints

    /// - Parameters:
    ///   - local: The endpoints of this host. It reports its changes to `RemoteEndpoints.record`.
    ///   - remote: The endpoints of the other hosts.
    package init(_ local: EndpointRegistry, _ remote: RemoteEndpoints) { (self.local, self.remote) = (local, remote) }

    package var hosts: ListedHosts? { remote.hosts }
    package var revision: UInt64 { remote.revision }
    package var lastChangeRevision: UInt64 { remote.lastChangeRevision }

    package var list: (endpoints: [Endpoint], revision: UInt64) {
        get async { await local.read { [remote] in remote.list(with: $0) } }
    }

    package func endpoint(_ id: EndpointID) async throws(RegistryError) -> Endpoint {
        let id = remote.hosts.ownID(of: id)
        guard id.namesHost else { return remote.hosts.listed(try await local.endpoint(id)) }
        return try remote.endpoint(id)
    }

    package func changes(
        after revision: UInt64?
    ) async -> (start: EndpointSubscriptionStart, changes: AsyncStream<EndpointChange>) {
        // The team registry reports each change to the log before the next one, so both lists have the same changes.
        await local.read { [remote] in remote.changes(after: revision, with: $0) }
    }
}

/// The reads of `TeamEndpoints`. The functions with the endpoints of this host run while these do not change.
extension RemoteEndpoints {
    fileprivate var revision: UInt64 { state.withLock(\.log.revision) }
    fileprivate var lastChangeRevision: UInt64 { state.withLock(\.log.lastChangeRevision) }

    fileprivate func endpoint(_ id: EndpointID) throws(RegistryError) -> Endpoint {
        guard let endpoint = state.withLock({ $0.table[id] }) else {
            throw hosts.absence(of: id) ?? .noSuchEndpoint(id.text)
        }
        return RemoteEndpointTable.resolved(endpoint, hosts.others)
    }

    fileprivate func list(with local: [Endpoint]) -> (endpoints: [Endpoint], revision: UInt64) {
        let local = hosts.listed(local)
        return state.withLock { ($0.table.merged(with: local, hosts.others), $0.log.revision) }
    }

    fileprivate func changes(
        after revision: UInt64?,
        with local: [Endpoint]
    ) -> (start: EndpointSubscriptionStart, changes: AsyncStream<EndpointChange>) {
        state.withLock { state in
            let changes = state.log.subscribe()
            if let missed = revision.flatMap({ state.log.changes(after: $0) }) { return (.replay(missed), changes) }
            let endpoints = state.table.merged(with: hosts.listed(local), hosts.others)
            return (.snapshot(endpoints, revision: state.log.revision), changes)
        }
    }
}

extension ListedHosts {
    /// Returns an endpoint of this host as lists show it.
    fileprivate func listed(_ endpoint: Endpoint) -> Endpoint { listed([endpoint])[0] }

    fileprivate func listed(_ local: [Endpoint]) -> [Endpoint] {
        guard let own else { return local }
        return local.map { $0.listed(on: own) }
    }
}
