package import Model
import Synchronization

/// The hosts of the team: the name of this host, and the state of the others.
///
/// Readable without the registry's actor. Only the registry changes it (`EndpointRegistry.setOwnHost`, `setHosts`,
/// `setMembers`).
package final class TeamHosts: Sendable {
    private struct State {
        var own: HostName?
        /// The other hosts, in the order of their names.
        var others: [HostStatus] = []
        /// The members of the team; nil while its registry is unreachable.
        var members: Set<HostName>?
    }

    private let state = Mutex(State())
    private let subscribers = Broadcast<[HostStatus]>(slow: .keepsNewest(1))

    /// The name of this host in its team. Nil without a team.
    package var own: HostName? { state.withLock(\.own) }

    /// The other hosts of the team, in the order of their names.
    package var others: [HostStatus] { state.withLock(\.others) }

    /// The ID that this broker uses for an endpoint: without a host if the ID names this host.
    package func ownID(of id: EndpointID) -> EndpointID {
        guard let host = id.host, host == own else { return id }
        return id.onItsHost
    }

    /// Returns whether the team has no such host. False without a team, and while its registry is unreachable.
    package func lacks(_ host: HostName) -> Bool {
        state.withLock { state in
            guard state.own != nil, state.own != host, let members = state.members else { return false }
            return !members.contains(host)
        }
    }

    /// Returns the reason why an endpoint is not listed, if its ID names a host whose endpoints are unknown. Nil otherwise.
    package func absence(of id: EndpointID) -> RegistryError? {
        let state = state.withLock { $0 }
        guard let host = id.host, let own = state.own, host != own, !state.others.contains(where: { $0.name == host })
        else { return nil }
        if state.members == nil { return .hostNotKnown(host) }
        return lacks(host) ? .noSuchHost(host) : .hostOffline(id, host)
    }

    /// Returns endpoints for a client: those of this broker have this host. Without a team, they stay as they are.
    package func withHosts(_ endpoints: [Endpoint]) -> [Endpoint] {
        guard let own else { return endpoints }
        return endpoints.map { $0.isOnOtherHost ? $0 : $0.listed(on: own) }
    }

    /// Returns an endpoint for a client, as the list does.
    package func withHost(_ endpoint: Endpoint) -> Endpoint { withHosts([endpoint])[0] }

    /// Returns a stream of the other hosts now and after every change. A slow reader gets only the newest list.
    package func lists() -> AsyncStream<[HostStatus]> {
        // Under the lock, so that no change falls between the first list and the subscription.
        state.withLock { subscribers.subscribe(startingWith: $0.others) }
    }

    /// - Returns: The former name of this host.
    func setOwn(_ name: HostName?) -> HostName? {
        state.withLock { state in
            let former = state.own
            state.own = name
            // The lists of endpoints and phones depend on the name of this host.
            if former != name { subscribers.send(state.others) }
            return former
        }
    }

    /// - Returns: False if nothing has changed.
    func setOthers(_ hosts: [HostStatus]) -> Bool {
        let sorted = hosts.sorted { $0.name < $1.name }
        return state.withLock { state in
            guard state.others != sorted else { return false }
            state.others = sorted
            subscribers.send(sorted)
            return true
        }
    }

    func setMembers(_ members: Set<HostName>?) { state.withLock { $0.members = members } }

    func finish() { subscribers.finish() }
}
