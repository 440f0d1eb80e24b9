import Model

/// Sightings that are not listed because of a limit.
package struct Refusals: Sendable {
    package enum Limit: Hashable, Sendable {
        /// `EndpointTable.limitPerAddress`
        case perAddress
        /// `EndpointTable.limit`, less its reserve for adverts
        case total
    }

    /// So many are known by name; those beyond are in `total` only.
    static let capacity = 8_192

    /// Since the start.
    package private(set) var total: UInt64 = 0
    private var now: [Sighting.ID: Limit] = [:]

    package var isEmpty: Bool { now.isEmpty }

    /// How many that limit keeps off the list now.
    package func count(by limit: Limit) -> Int { now.values.count { $0 == limit } }

    mutating func add(_ id: Sighting.ID, _ limit: Limit) {
        total += 1
        if now.count < Self.capacity || now[id] != nil { now[id] = limit }
    }

    mutating func remove(_ id: Sighting.ID) { now[id] = nil }

    mutating func remove(of source: Sighting.Source) { now = now.filter { $0.key.source != source } }
}
