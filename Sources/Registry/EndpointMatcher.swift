import FoundationEssentials
import Model

/// Decides which listed endpoint a sighting belongs to. Changes nothing.
///
/// The matcher shares the storage of the indexes that it was made from. Discard it before the indexes change, because
/// the first change would otherwise copy them.
struct EndpointMatcher {
    let endpoints: EndpointIndex
    let sightings: SightingIndex
    /// The approvals and secrets that access control holds.
    let trusts: [EndpointID: EndpointTrust]
    /// The time of the event that is matched.
    var now = Date.distantPast

    /// Finds the endpoint for a server that has none.
    ///
    /// - Parameters:
    ///   - sighting: The sighting on this server.
    ///   - server: The server without an endpoint.
    ///   - former: The endpoint of the sighting before it moved to this server.
    /// - Returns: The endpoint; nil if none matches and the server is a new endpoint.
    func endpoint(for sighting: Sighting, on server: ServerKey, movedFrom former: EndpointID?) -> EndpointID? {
        anchor(for: sighting, on: server)
            ?? endpointBeforeMove(of: sighting, to: server, former)
            ?? relaunchedEndpoint(of: sighting)
    }

    /// Returns the USB or registered endpoint that an advertisement belongs to. Either an owner approved the
    /// advertisement's address for the USB endpoint, or both report the same launch.
    ///
    /// The network route needs its own approval in either case. A forged advertisement therefore gains a line in the
    /// list and nothing else.
    func anchor(for sighting: Sighting, on server: ServerKey) -> EndpointID? {
        guard sighting.id.source == .bonjour else { return nil }
        let approved = trusts.lazy.filter { id, trust in
            endpoints[id]?.record.source.isPhone == true && covers(trust.approval, sighting)
        }
        if let id = approved.map(\.key).min() { return id }
        guard let portKey = server.portKey, let launchID = sighting.launchID, !launchID.isEmpty else { return nil }
        // An endpoint with its own approval keeps its route. Moving the route would move the approval.
        let own = endpoints.id(of: server) ?? relaunchedEndpoint(of: sighting)
        if let own, endpoints[own]?.record.source == .bonjour, trusts[own]?.approval != nil { return nil }
        let servers = sightings.servers(at: portKey)
        return launch(launchID, of: sighting.app, on: servers.filter(\.isUSB))
            ?? launch(launchID, of: sighting.app, on: servers.filter(\.isRegistered))
    }

    /// Returns the only endpoint of these servers with this launch, unless it is another app.
    private func launch(_ launchID: SanitizedText, of app: SanitizedText, on servers: Set<ServerKey>) -> EndpointID? {
        let candidates = Set(servers.compactMap { endpoints.id(of: $0) }).filter { endpoints[$0]?.launch == launchID }
        guard let id = candidates.first, candidates.count == 1, let endpoint = endpoints[id]?.record.endpoint else {
            return nil
        }
        // A USB endpoint without a known app does not contradict the advertisement.
        return endpoint.app.isEmpty || endpoint.app == app ? id : nil
    }

    /// Returns the offline endpoint of an advertisement that now belongs to a USB or registered endpoint.
    ///
    /// An endpoint with its own approval or secret stays listed. Its trust does not move.
    func earlierEndpoint(of sighting: Sighting, mergedInto id: EndpointID) -> Endpoint? {
        guard sighting.id.source == .bonjour, endpoints[id]?.record.source.isAnchor == true,
            let earlier = relaunchedEndpoint(of: sighting), trusts[earlier] == nil, endpoints[earlier]?.isUnseen == true
        else { return nil }
        return endpoints[earlier]?.record.endpoint
    }

    /// Returns true if a network server still belongs to its USB or registered endpoint.
    func belongs(_ server: ServerKey, to id: EndpointID) -> Bool {
        guard let entry = endpoints[id], entry.record.source.isAnchor, !server.isAnchor else { return true }
        return sightings.sightings(on: server).contains { sighting in
            sighting.launchID.map { !$0.isEmpty && $0 == entry.launch } ?? false
                || entry.record.source.isPhone && covers(trusts[id]?.approval, sighting)
        }
    }

    /// Returns whether the server of a partial sighting may be that of another endpoint, known on the same port of the phone.
    ///
    /// A busy app may answer only some requests of a probe. It must not get a second endpoint, and another app on the port
    /// must not be taken for it.
    func isAmbiguous(_ sighting: Sighting) -> Bool {
        guard sighting.isPartial, case .usb(let port) = sighting.routes.first else { return false }
        let own = Set(IdentityKey.candidates(for: sighting))
        return endpoints.all.contains { $0.record.usb == port && own.isDisjoint(with: $0.record.keys) }
    }

    /// Returns the endpoints for the same port of the same device that are less specific than this sighting.
    ///
    /// An app that is still starting may report its name late or wrongly. Until then its port identifies the endpoint. An
    /// endpoint that also has a network server is excluded, because its app is known.
    func superseded(by sighting: Sighting, on server: ServerKey) -> [EndpointID] {
        guard sighting.id.source.isPhone, let udid = sighting.device else { return [] }
        var kinds: [EndpointKind] = []
        if !sighting.app.isEmpty { kinds.append(sighting.kind) }
        if sighting.kind != .tcp { kinds.append(.tcp) }
        let superseded = kinds.flatMap { kind in
            endpoints.ids(with: IdentityKey(ofNameless: kind, on: udid, port: sighting.port))
        }
        return Set(superseded).sorted().filter { id in
            guard let entry = endpoints[id], entry.record.endpoint.app.isEmpty else { return false }
            return entry.servers.isSubset(of: [server])
        }
    }

    /// Returns the advertisement's endpoint before it moved, while other interfaces and the other IP version still
    /// report the old port.
    ///
    /// On one machine a service name has one SRV record (RFC 6763, section 4.1), so those reports will follow.
    private func endpointBeforeMove(of sighting: Sighting, to server: ServerKey, _ former: EndpointID?) -> EndpointID? {
        guard sighting.id.source == .bonjour, let former, let entry = endpoints[former],
            entry.record.source == .bonjour, isOnSameDevice(sighting, as: entry.record)
        else { return nil }
        // The app and Flutter's tool announce one move one after the other, under names of their own.
        if case .localDartVM = server {
            return IdentityKey.candidates(for: sighting).contains(where: entry.record.keys.contains) ? former : nil
        }
        let isOne = sightings.sightings(on: entry.servers).allSatisfy { other in
            (other.name, other.kind, other.app) == (sighting.name, sighting.kind, sighting.app)
                && other.role == sighting.role
        }
        return isOne && entry.record.endpoint.app == sighting.app ? former : nil
    }

    /// Returns the endpoint of which a sighting may be a relaunch, although its last server may still run.
    func possibleRelaunch(of sighting: Sighting) -> EndpointID? {
        IdentityKey.candidates(for: sighting).lazy.flatMap { endpoints.ids(with: $0) }
            .filter { id in
                guard let record = endpoints[id]?.record else { return false }
                return record.source == sighting.id.source && !record.contradicts(sighting)
            }.min()
    }

    /// Returns the endpoint that has one of the sighting's identity keys and no running server at present.
    private func relaunchedEndpoint(of sighting: Sighting) -> EndpointID? {
        if let id = endpointAtSameAddress(as: sighting) { return id }
        for key in IdentityKey.candidates(for: sighting) {
            let free = endpoints.ids(with: key).filter { id in
                guard let entry = endpoints[id], entry.record.source == sighting.id.source,
                    !entry.record.contradicts(sighting)
                else { return false }
                // The last server has ended, although its source may not know it yet.
                if entry.liveness.lastFailure?.reason == .refused { return true }
                // A second server with the same key at the same time is another instance, not a relaunch.
                return !entry.servers.contains { $0.isAnchor == sighting.id.source.isAnchor }
            }
            let exact = free.filter { endpoints[$0]?.record.machine == sighting.machine?.text }
            if let id = exact.min() ?? free.min() { return id }
        }
        return nil
    }

    /// Returns true if the approval applies to one of the sighting's addresses.
    private func covers(_ approval: Approval?, _ sighting: Sighting) -> Bool {
        guard approval != nil else { return false }
        return sighting.routes.contains { route in
            let route = EndpointRoute(route, app: sighting.app, approval: .pending)
            return ApprovalPolicy.decision(on: route, approval) == .approved
        }
    }
}

extension Sighting.Source {
    /// True if advertisements of the same launch join an endpoint of this source.
    var isAnchor: Bool { isPhone || self == .registration }
}
