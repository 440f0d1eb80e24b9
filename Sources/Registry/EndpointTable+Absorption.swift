import Model

/// What becomes of an endpoint that was listed before its app had said its name.
extension EndpointTable {
    /// The endpoints that stand for the same port of the same phone and know less of it than this sighting tells.
    ///
    /// An app that is still starting answers the question for its name wrongly or late, and is listed by its port until it
    /// tells. One whose network side is known is none of them: it has a name.
    func lesserEndpoints(than sighting: Sighting, on server: ServerKey) -> [EndpointID] {
        guard sighting.id.source == .usb, let udid = sighting.device else { return [] }
        var kinds: [EndpointKind] = []
        if !sighting.app.isEmpty { kinds.append(sighting.kind) }
        if sighting.kind != .tcp { kinds.append(.tcp) }
        let lesser = kinds.flatMap { kind in
            holders[IdentityKey(ofNameless: kind, on: udid, port: sighting.port), default: []]
        }
        return Set(lesser).sorted().filter { id in
            guard let entry = entries[id], entry.record.endpoint.app.isEmpty else { return false }
            return entry.servers.isSubset(of: [server])
        }
    }

    /// Keeps the ids of endpoints that are gone good for the one that they turned out to be.
    mutating func succeed(_ former: [EndpointID], by id: EndpointID) {
        for old in former where old != id {
            if let previous = successors[old] { entries[previous]?.record.formerIDs?.removeAll { $0 == old } }
            successors[old] = id
            let known = entries[id]?.record.formerIDs ?? []
            entries[id]?.record.formerIDs = known + [old]
        }
    }
}
