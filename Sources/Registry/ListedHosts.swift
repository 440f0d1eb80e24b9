package import Model
import Synchronization

/// The hosts whose endpoints an `EndpointListing` has: the name of this host, and the states of the others. The module
/// `Team` sets them.
package final class ListedHosts: Sendable {
    private struct State {
        /// The other hosts, in the order of their names.
        var others: [HostStatus] = []
        /// The members of the team; nil while its registry is unreachable.
        var members: Set<HostName>?
    }

    private let state = Mutex(State())
    private let subscribers = Broadcast<[HostStatus]>(slow: .keepsNewest(1))

    /// The name of this host.
    package let own: HostName

    package init(own: HostName) { self.own = own }

    /// The other hosts of the team, in the order of their names.
    package var others: [HostStatus] { state.withLock(\.others) }

    /// The ID that this broker uses for an endpoint: without a host if the ID names this host.
    package func ownID(of id: EndpointID) -> EndpointID {
        guard let host = id.host, host == own else { return id }
        return id.onItsHost
    }

    /// Returns whether the team has no such host. False while its registry is unreachable.
    package func lacks(_ host: HostName) -> Bool {
        host != own && state.withLock(\.members).map { !$0.contains(host) } ?? false
    }

    /// Returns the reason why an endpoint is not listed, if its ID names a host whose endpoints are unknown. Nil otherwise.
    package func absence(of id: EndpointID) -> RegistryError? {
        let state = state.withLock { $0 }
        guard let host = id.host, host != own, !state.others.contains(where: { $0.name == host })
        else { return nil }
        if state.members == nil { return .hostNotKnown(host) }
        return lacks(host) ? .noSuchHost(host) : .hostOffline(id, host)
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
        let sorted = hosts.filter { $0.name != own }.sorted { $0.name < $1.name }
        return state.withLock { state in
            guard state.others != sorted else { return false }
            state.others = sorted
            subscribers.send(sorted)
            return true
        }
    }

    /// Sets the members of the team. Nil means that the registry of the team is unreachable.
    package func setMembers(_ members: Set<HostName>?) { state.withLock { $0.members = members } }

    package func finish() { subscribers.finish() }
}
