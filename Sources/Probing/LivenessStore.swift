package import Model

/// What the liveness prober needs of the registry: the list, who looks at it, and a place to report to.
package protocol LivenessStore: Sendable {
    /// The list and its revision; nil while `revision` is still the present one.
    func list(ifChangedSince revision: UInt64?) async -> (endpoints: [Endpoint], revision: UInt64)?
    /// The endpoints whose state a client wants to know now.
    func watched() async -> WatchedEndpoints
    /// Nil is success.
    func report(_ failure: DialError?, of id: EndpointID) async
}

/// The endpoints that are probed at the usual pace; the others are probed seldom.
package enum WatchedEndpoints: Hashable, Sendable {
    case all
    case only(Set<EndpointID>)

    func contains(_ id: EndpointID) -> Bool {
        switch self {
        case .all: true
        case .only(let ids): ids.contains(id)
        }
    }
}
