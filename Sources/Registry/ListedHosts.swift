package import Model
import Synchronization

/// The hosts whose endpoints an `EndpointListing` has: the name of this host, and the states of the others. The module
/// `Team` sets them when the broker joins a team, and none when it leaves.
package final class ListedHosts: Sendable {
    private struct State {
        var own: HostName?
        /// The last name of this host.
        var name: HostName?
        /// The other hosts, in the order of their names.
        var others: [HostStatus] = []
        /// The members of the team; nil while its registry is unreachable.
        var members: Set<HostName>?

        func lacks(_ host: HostName) -> Bool { host != own && members.map { !$0.contains(host) } ?? false }
    }

    private let state: Mutex<State>
    private let subscribers = Broadcast<[HostStatus]>(slow: .keepsNewest(1))

    /// - Parameters:
    ///   - own: The name of this host; nil without a team.
    ///   - former: Its last name, in a team that it has left.
    package init(own: HostName? = nil, former: HostName? = nil) { state = Mutex(State(own: own, name: own ?? former)) }

    /// The name of this host; nil without a team.
    package var own: HostName? { state.withLock(\.own) }

    /// The name of this host, also after it has left its team, because clients and grants still name it.
    package var name: HostName? { state.withLock(\.name) }

    /// The other hosts of the team, in the order of their names.
    package var others: [HostStatus] { state.withLock(\.others) }

    /// The ID that this broker uses for an endpoint: without a host if the ID names this host.
    package func ownID(of id: EndpointID) -> EndpointID {
        guard let host = id.host, host == name else { return id }
        return id.onItsHost
    }

    /// Returns whether the team has no such host. False while its registry is unreachable.
    package func lacks(_ host: HostName) -> Bool { state.withLock { $0.lacks(host) } }

    /// Returns the reason why an endpoint is not listed, if its ID names a host whose endpoints are unknown. Nil otherwise.
    package func absence(of id: EndpointID) -> RegistryError? {
        let state = state.withLock { $0 }
        guard let host = id.host, state.own != nil, host != state.own,
            !state.others.contains(where: { $0.name == host })
        else { return nil }
        if state.members == nil { return .hostNotKnown(host) }
        return state.lacks(host) ? .noSuchHost(host) : .hostOffline(id, host)
    }

    /// Returns a stream of the other hosts now and after every change. A slow reader gets only the newest list.
    package func lists() -> AsyncStream<[HostStatus]> {
        // Under the lock, so that no change falls between the first list and the subscription.
        state.withLock { subscribers.subscribe(startingWith: $0.others) }
    }

    /// Sets the states of the hosts. The entry of this host is ignored.
    ///
    /// - Returns: False if nothing has changed.
    package func setOthers(_ hosts: [HostStatus]) -> Bool {
        let sorted = hosts.sorted { $0.name < $1.name }
        return state.withLock { state in
            let sorted = sorted.filter { $0.name != state.own }
            guard state.others != sorted else { return false }
            state.others = sorted
            subscribers.send(sorted)
            return true
        }
    }

    /// Sets the members of the team. Nil means that the registry of the team is unreachable.
    package func setMembers(_ members: Set<HostName>?) { state.withLock { $0.members = members } }

    /// Begins the membership in a team, whose hosts are not known yet, or ends it. The name of an ended one stays known.
    package func setOwn(_ host: HostName?) {
        state.withLock { state in
            state = State(own: host, name: host ?? state.name)
            subscribers.send([])
        }
    }

    package func finish() { subscribers.finish() }
}
