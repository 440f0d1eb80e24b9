package import Model
import NIOHTTP1

/// Local addresses that lead to endpoints and phones.
extension PatchbayClient {
    package func tunnels() async throws -> TunnelList {
        try await answer(to: OutgoingRequest(method: .GET, path: ["tunnels"]))
    }

    /// Opens a tunnel that stands until it is removed.
    package func open(_ spec: TunnelSpec) async throws -> Tunnel {
        try await answer(to: OutgoingRequest(method: .POST, path: ["tunnels"], body: body(spec)))
    }

    /// Opens tunnels that stand until they are removed: all of them or none.
    package func open(_ specs: [TunnelSpec]) async throws -> TunnelList {
        try await answer(to: OutgoingRequest(method: .POST, path: ["tunnels", "all"], body: body(specs)))
    }

    package func removeTunnel(_ id: String) async throws {
        try await perform(OutgoingRequest(method: .DELETE, path: ["tunnels", id]))
    }

    /// Removes every tunnel and says how many there were.
    package func removeAllTunnels() async throws -> Int {
        try await answer(to: OutgoingRequest(method: .DELETE, path: ["tunnels"]), as: DeleteResponse.self).removed
    }

    /// Opens tunnels that stand for as long as this call does: they go when it is cancelled or the process ends.
    ///
    /// Returns when the broker ends the stream.
    package func holdTunnels(
        _ specs: [TunnelSpec],
        _ handle: (EphemeralTunnelEvent) async throws -> Void
    ) async throws {
        let call = OutgoingRequest(method: .POST, path: ["tunnels", "held"], body: try body(specs))
        try await follow(call) { event in
            switch event.name {
            case "tunnels": try await handle(.opened(decode([Tunnel].self, from: event.data.utf8, what: "an event")))
            case "failure":
                try await handle(
                    .failure(decode(TunnelConnectionFailure.self, from: event.data.utf8, what: "an event"))
                )
            default: break
            }
        }
    }
}

/// What happens to tunnels that stand for as long as they are held.
package enum EphemeralTunnelEvent: Hashable, Sendable {
    /// They listen; in the order in which they were asked for. Comes first.
    case opened([Tunnel])
    /// A connection through one of them did not come about.
    case failure(TunnelConnectionFailure)
}
