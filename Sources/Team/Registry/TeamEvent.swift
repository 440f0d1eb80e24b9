package import AccessControl
package import FoundationEssentials
package import Model

/// A change of the team as this host sees it, in order.
///
/// Entries of this host itself are not reported, except its membership and its claims. Entries of a host that is no
/// member are not reported.
package enum TeamEvent: Hashable, Sendable {
    /// A new or changed member.
    case member(TeamMember)
    /// The host was removed from the team. The removal of its entries was reported before.
    case memberRemoved(HostName)
    /// A running broker, new or changed.
    case host(TeamHost)
    case hostRemoved(HostName)
    /// A new or changed endpoint of another host. Its `host` has no `staleSince`: `stale` covers all hosts.
    case endpoint(Endpoint)
    case endpointRemoved(EndpointID)
    /// A new or changed phone at another host.
    case device(Device, on: HostName)
    case deviceRemoved(UDID, Device.Transport, on: HostName)
    case claim(LeaseTarget, TeamClaim)
    case claimRemoved(LeaseTarget)
    /// Marks the entries of all other hosts as possibly outdated since a time. Nil marks them as current, after all
    /// changes that were missed.
    case stale(since: Date?)
}
