import Discovery
import HummingbirdCore
import Model

/// `/v1/advertisements`.
enum AdvertisementRoutes {
    @Sendable static func list(_ request: APIRequest) async throws -> APIResponse {
        try .json(ListResponse(await request.services.advertisements?.advertisements() ?? []))
    }

    @Sendable static func create(_ request: APIRequest) async throws -> APIResponse {
        let spec = try validated(try await request.body(AdvertisementSpec.self))
        return try .created(try await publisher(request).advertise(spec))
    }

    @Sendable static func update(_ request: APIRequest) async throws -> APIResponse {
        let change = try await request.body(AdvertisementUpdate.self)
        if let problem = change.txt.validationError { throw Problem(.badRequest, problem) }
        return try .json(
            try await publisher(request).update(try request.parameter("id"), txt: change.txt)
        )
    }

    @Sendable static func remove(_ request: APIRequest) async throws -> APIResponse {
        try await publisher(request).withdraw(try request.parameter("id"))
        return .noContent
    }

    /// Advertises a service, and streams its state and every later change. The advertisement is removed when the client
    /// disconnects.
    @Sendable static func createEphemeral(_ request: APIRequest) async throws -> APIResponse {
        try request.requireStreamPlace()
        let publisher = try publisher(request)
        let advertisement = try await publisher.advertise(
            try validated(try await request.streamingRequestBody(AdvertisementSpec.self))
        )
        // Ignores errors, because another client may have removed the advertisement.
        request.cleanup.add { try? await publisher.withdraw(advertisement.id) }
        return ServerSentEventStream.response(to: request.httpRequest) { events in
            var last = advertisement
            try events.send("advertisement", advertisement)
            for await _ in await publisher.advertisementChanges() {
                // Another client has removed the advertisement, so the stream ends.
                guard let now = await publisher.advertisements().first(where: { $0.id == advertisement.id }) else {
                    return
                }
                guard now != last else { continue }
                last = now
                try events.send("advertisement", now)
            }
        }
    }

    private static func publisher(_ request: APIRequest) throws(Problem) -> any AdvertisementPublisher {
        if let publisher = request.services.advertisements { return publisher }
        throw Problem(
            .unavailable,
            "Bonjour is turned off by discovery.enabled = false",
            hint: "set discovery.enabled = true in the configuration, and restart the broker"
        )
    }

    private static func validated(_ spec: AdvertisementSpec) throws -> AdvertisementSpec {
        if let problem = spec.validationError { throw Problem(.badRequest, problem) }
        return spec
    }
}
