import FoundationEssentials
import Model

/// The effects of the limits. The evicted and refused sightings stay known, and are listed when there is room again.
extension EndpointTable {
    /// Evicts an endpoint if a new one needs its place. Returns nil if the new one must not be listed.
    mutating func makeRoom(for sighting: Sighting) -> [Change]? {
        switch limits.room(for: sighting, in: list, trusts: trusts) {
        case .available: return []
        case .refused(let limit):
            refusals.add(sighting, limit)
            return nil
        case .byEvicting(let endpoint, let limit):
            for evicted in sightings.sightings(on: list[endpoint.id]?.servers ?? []) {
                _ = remove(evicted.id)
                refusals.add(evicted, limit)
            }
            list.retire(endpoint.id, isEvicted: true)
            return [.removed(endpoint)]
        }
    }

    /// Lists a sighting that a limit has excluded, after another one has gone. Displaces no endpoint that a source sees.
    mutating func listRefused(insteadOf lost: Sighting?, at now: Date) -> [Change] {
        guard let lost, lost.id.source.isNetwork, let next = refusals.next(near: lost.claimedAddresses) else {
            return []
        }
        switch limits.room(for: next, in: list, trusts: trusts) {
        case .available: break
        case .byEvicting(let endpoint, _) where list[endpoint.id]?.isUnseen == true: break
        case .byEvicting, .refused: return []
        }
        refusals.remove(next.id)
        return observe(next, at: now)
    }
}
