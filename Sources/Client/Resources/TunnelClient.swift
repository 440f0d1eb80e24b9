package import Model
import NIOHTTP1

/// The tunnels to endpoints and devices.
package struct TunnelClient: Sendable {
    let client: PatchbayClient

    package func list() async throws -> [Tunnel] { try await client.items(at: "tunnels") }

    /// Opens a tunnel that exists until its removal.
    package func open(_ spec: TunnelSpec) async throws -> Tunnel {
        try await client.response(to: OutgoingRequest(method: .POST, path: ["tunnels"], body: client.body(spec)))
    }

    /// Opens tunnels that exist until they are removed. Opens all of them or none.
    package func open(_ specs: [TunnelSpec]) async throws -> [Tunnel] {
        let request = OutgoingRequest(method: .POST, path: ["tunnels", "all"], body: try client.body(specs))
        return try await client.response(to: request, as: ListResponse<Tunnel>.self).items
    }

    package func remove(_ id: String) async throws {
        try await client.perform(OutgoingRequest(method: .DELETE, path: ["tunnels", id]))
    }

    /// Removes every tunnel. Returns the number of removed tunnels.
    package func removeAll() async throws -> Int {
        try await client.response(to: OutgoingRequest(method: .DELETE, path: ["tunnels"]), as: DeleteResponse.self)
            .deletedCount
    }

    /// Opens ephemeral tunnels. They are removed when this call is cancelled or the process exits.
    ///
    /// Returns when the broker ends the stream.
    package func openEphemeral(
        _ specs: [TunnelSpec],
        _ handle: (EphemeralTunnelEvent) async throws -> Void
    ) async throws {
        let request = OutgoingRequest(
            method: .POST,
            path: ["tunnels", "ephemeral"],
            body: try client.body(specs),
            accept: "text/event-stream"
        )
        try await client.stream(request) { event in
            switch event.name {
            case "tunnels": try await handle(.opened(client.decode([Tunnel].self, from: event.data, what: "an event")))
            case "failure":
                try await handle(
                    .failure(client.decode(TunnelConnectionFailure.self, from: event.data, what: "an event"))
                )
            default: break
            }
        }
    }
}

/// The ports of Android phones that lead to the broker's machine.
extension TunnelClient {
    package func listReverse() async throws -> [ReverseTunnel] { try await client.items(at: "reverse-tunnels") }

    /// Opens a tunnel, and waits for the answer of an attached phone.
    package func openReverse(_ port: UInt16, of udid: UDID, to localPort: UInt16) async throws -> ReverseTunnel {
        let body = try client.body(ReverseTunnelSpec(localPort: localPort))
        let request = OutgoingRequest(method: .PUT, path: Self.path(port, udid), body: body)
        return try await client.response(to: request, extraTimeout: Self.confirmationTimeout)
    }

    /// Removes a tunnel, and waits for the answer of an attached phone.
    package func removeReverse(_ port: UInt16, of udid: UDID) async throws {
        let request = OutgoingRequest(method: .DELETE, path: Self.path(port, udid))
        try await client.perform(request, extraTimeout: Self.confirmationTimeout)
    }

    /// The time that the broker gives a phone, and some more.
    private static let confirmationTimeout = Duration.seconds(15)

    private static func path(_ port: UInt16, _ udid: UDID) -> [String] { ["reverse-tunnels", udid.text, "\(port)"] }
}

/// An event of ephemeral tunnels.
package enum EphemeralTunnelEvent: Hashable, Sendable {
    /// The tunnels listen. Always the first event; in the order of the request.
    case opened([Tunnel])
    /// A connection through one of the tunnels failed.
    case failure(TunnelConnectionFailure)
}
