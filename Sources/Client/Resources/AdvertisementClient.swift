package import Model
import NIOHTTP1

/// Bonjour services that the broker publishes for clients.
package struct AdvertisementClient: Sendable {
    let client: PatchbayClient

    package func list() async throws -> [Advertisement] { try await client.items(at: "advertisements") }

    /// Publishes a service until its removal.
    package func publish(_ spec: AdvertisementSpec) async throws -> Advertisement {
        try await client.response(to: OutgoingRequest(method: .POST, path: ["advertisements"], body: client.body(spec)))
    }

    /// Replaces the TXT record of a published service.
    package func update(_ id: String, txt: TXTRecord) async throws -> Advertisement {
        let change = try client.body(AdvertisementUpdate(txt: txt))
        return try await client.response(
            to: OutgoingRequest(method: .PATCH, path: ["advertisements", id], body: change)
        )
    }

    package func remove(_ id: String) async throws {
        try await client.perform(OutgoingRequest(method: .DELETE, path: ["advertisements", id]))
    }

    /// Publishes a service while this call runs, and passes each change of its name and state to `handle`.
    ///
    /// Returns when the broker ends the stream.
    package func publishEphemeral(
        _ spec: AdvertisementSpec,
        _ handle: (Advertisement) async throws -> Void
    ) async throws {
        let request = OutgoingRequest(
            method: .POST,
            path: ["advertisements", "ephemeral"],
            body: try client.body(spec),
            accept: "text/event-stream"
        )
        try await client.stream(request) { event in
            guard event.name == "advertisement" else { return }
            try await handle(client.decode(Advertisement.self, from: event.data, what: "an advertisement event"))
        }
    }
}
