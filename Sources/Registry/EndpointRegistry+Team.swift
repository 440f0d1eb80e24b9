package import Model

/// The endpoints of the other hosts of a team. They appear in the list, and no part of this broker dials them.
extension EndpointRegistry {
    /// Applies changes of the team's registry. Changes of this host are ignored, because its own list is newer.
    ///
    /// Every change gets a revision and an event. An endpoint above the limit is counted in `remoteRefusals`, and listed
    /// as soon as there is room.
    package func apply(_ changes: [RemoteEndpointChange]) {
        for change in changes where change.host != teamHosts.own { publishRemote(remote.apply(change)) }
    }

    /// Sets the name of this host. Nil means no team, and removes the endpoints and states of all other hosts.
    package func setOwnHost(_ name: HostName?) {
        guard teamHosts.setOwn(name) != name else { return }
        if let name {
            publishRemote(remote.apply(.removeAll(of: name)))
        } else {
            publishRemote(remote.removeAll())
            setHosts([])
            setMembers(nil)
        }
        changeLog.skipRevision()
    }

    /// Sets the other hosts of the team, with their states. The endpoints of a host that is missing here stay listed until
    /// `apply` removes them.
    ///
    /// A change is one event of `TeamHosts.lists`, and no event of the endpoints. It has a revision, so that a client
    /// that waits for one gets the list again.
    package func setHosts(_ hosts: [HostStatus]) {
        let others = hosts.filter { $0.name != teamHosts.own }
        if teamHosts.setOthers(others) { changeLog.skipRevision() }
    }

    /// Sets the members of the team. Nil means that the registry of the team is unreachable.
    package func setMembers(_ members: Set<HostName>?) { teamHosts.setMembers(members) }

    /// The endpoints of other hosts that the limit excludes.
    package var remoteRefusals: RemoteRefusals { remote.refusals }
}

/// The endpoints that this broker itself reaches. Parts that probe, dial, save or advertise endpoints use only these.
extension EndpointRegistry {
    package var localEndpoints: [Endpoint] { table.endpoints }

    /// The local endpoints and the revision of their last change; nil if `revision` is that one.
    package func localList(ifChangedSince revision: UInt64?) -> (endpoints: [Endpoint], revision: UInt64)? {
        revision == localRevision ? nil : (table.endpoints, localRevision)
    }

    /// Returns the local endpoint with this ID or former ID. The ID may name this host.
    ///
    /// - Throws: `RegistryError.onOtherHost` for an ID that names another host.
    package func localEndpoint(_ id: EndpointID) throws(RegistryError) -> Endpoint {
        let id = teamHosts.ownID(of: id)
        if let host = id.host { throw .onOtherHost(id, host) }
        guard let endpoint = table[id] else { throw .noSuchEndpoint(id.text) }
        return endpoint
    }

    /// Returns the local endpoints and the stream of later changes of local endpoints. No change in between is lost.
    package func localChanges() -> (endpoints: [Endpoint], changes: AsyncStream<EndpointChange>) {
        (table.endpoints, changeLog.subscribeToLocal())
    }
}
