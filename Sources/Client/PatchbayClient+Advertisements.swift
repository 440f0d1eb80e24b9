package import Model
import NIOHTTP1

/// Bonjour services that the broker publishes for somebody.
extension PatchbayClient {
    package func advertisements() async throws -> AdvertisementList {
        try await answer(to: OutgoingRequest(method: .GET, path: ["advertisements"]))
    }

    /// Publishes a service until it is withdrawn.
    package func advertise(_ spec: AdvertisementSpec) async throws -> Advertisement {
        try await answer(to: OutgoingRequest(method: .POST, path: ["advertisements"], body: body(spec)))
    }

    /// Puts another TXT record in the place of the published one.
    package func update(_ id: String, txt: TXTRecord) async throws -> Advertisement {
        let change = try body(AdvertisementUpdate(txt: txt))
        return try await answer(to: OutgoingRequest(method: .PATCH, path: ["advertisements", id], body: change))
    }

    package func withdraw(_ id: String) async throws {
        try await perform(OutgoingRequest(method: .DELETE, path: ["advertisements", id]))
    }

    /// Publishes a service for as long as this call stands, and tells each change of its name and state.
    ///
    /// Returns when the broker ends the stream.
    package func holdAdvertisement(
        _ spec: AdvertisementSpec,
        _ handle: (Advertisement) async throws -> Void
    ) async throws {
        let call = OutgoingRequest(method: .POST, path: ["advertisements", "held"], body: try body(spec))
        try await follow(call) { event in
            guard event.name == "advertisement" else { return }
            try await handle(decode(Advertisement.self, from: event.data.utf8, what: "an advertisement event"))
        }
    }
}
