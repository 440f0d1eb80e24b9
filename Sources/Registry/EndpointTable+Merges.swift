import FoundationEssentials
package import Model

/// Moves of servers from one endpoint to another: of merged and separated advertisements, and of relaunches.
extension EndpointTable {
    /// Returns the older endpoint of which an endpoint may be a relaunch.
    package func older(than id: EndpointID) -> EndpointID? { splits.older(than: id) }

    /// Removes sightings, and joins endpoints that no source sees any more with their relaunches.
    mutating func removeSightings(_ ids: [Sighting.ID], at now: Date) -> [Change] {
        let touched = Set(ids.compactMap { remove($0) })
        return touched.sorted().flatMap { separate(from: $0, at: now) } + refresh(touched)
            + touched.sorted().flatMap { joinRelaunch(of: $0, at: now) }
    }

    /// Joins an endpoint that no source sees any more with its relaunch.
    private mutating func joinRelaunch(of id: EndpointID, at now: Date) -> [Change] {
        guard let entry = list[id], entry.isUnseen else { return [] }
        let period = entry.record.source.isPhone ? nil : SplitEndpoints.advertisementPeriod
        return splits.takeRelaunch(of: id, within: period, at: now).map { joinRelaunch($0, to: id) } ?? []
    }

    /// Makes the servers of a relaunch those of the older endpoint, whose ID, tunnels, grants and approval stay.
    mutating func joinRelaunch(_ newer: EndpointID, to id: EndpointID) -> [Change] {
        guard let relaunch = list[newer], !relaunch.isUnseen else { return refresh([id]) }
        list.recordRefusal(of: id)
        for server in relaunch.servers {
            list.unassign(server)
            list.assign(server, to: id)
        }
        list.update(id) {
            $0.liveness = relaunch.liveness
            $0.launch = relaunch.launch
        }
        list.merge(newer, into: id)
        return [.removed(relaunch.record.endpoint)] + refresh([id])
    }

    /// Moves advertisements to the USB or registered endpoint that reports the same launch.
    mutating func mergeAcrossTransports(_ sighting: Sighting, on server: ServerKey) -> [Change] {
        guard let launchID = sighting.launchID, !launchID.isEmpty, let portKey = server.portKey else { return [] }
        var changes: [Change] = []
        for other in sightings.servers(at: portKey) where !other.isAnchor {
            let advertisements = sightings.sightings(on: other).filter { $0.launchID == launchID }
            if let id = advertisements.first.flatMap({ matcher.anchor(for: $0, on: other) }) {
                changes += join(other, to: id)
            }
        }
        return changes
    }

    /// Moves an advertisement from its own endpoint to another one. Its own ID becomes an alias unless it has trust.
    mutating func join(_ server: ServerKey, to id: EndpointID) -> [Change] {
        guard let own = list.id(of: server), own != id, list[own]?.record.source == .bonjour else { return [] }
        list.unassign(server, at: lastEventAt)
        list.assign(server, to: id)
        var changes: [Change] = []
        if let left = list[own], left.isUnseen, trusts[own] == nil {
            list.merge(own, into: id)
            changes.append(.removed(left.record.endpoint))
        }
        return changes + refresh([own, id])
    }

    /// Lists advertisements separately again if they no longer belong to a USB or registered endpoint.
    mutating func separate(from id: EndpointID, at now: Date) -> [Change] {
        guard let entry = list[id], entry.record.source.isAnchor else { return [] }
        return relist(entry.servers.filter { !matcher.belongs($0, to: id) }, at: now)
    }

    /// Lists the sightings on these servers again, as if they were new.
    mutating func relist(_ servers: Set<ServerKey>, at now: Date) -> [Change] {
        let detached = sightings.sightings(on: servers)
        for sighting in detached { _ = remove(sighting.id) }
        return detached.flatMap { observe($0, at: now) }
    }
}
