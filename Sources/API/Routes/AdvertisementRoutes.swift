import Hummingbird
import Model

/// `/v1/advertisements`.
enum AdvertisementRoutes {
    @Sendable static func list(_ call: APIRequest) async throws -> Response {
        try call.answer(AdvertisementList(advertisements: await call.broker.advertisements.advertisements()))
    }

    @Sendable static func advertise(_ call: APIRequest) async throws -> Response {
        try call.answer(
            try await call.broker.advertisements.advertise(try checked(try await call.body(AdvertisementSpec.self))),
            status: .created
        )
    }

    @Sendable static func update(_ call: APIRequest) async throws -> Response {
        let change = try await call.body(AdvertisementUpdate.self)
        if let problem = change.txt.problem { throw Problem(.badRequest, problem) }
        return try call.answer(
            try await call.broker.advertisements.update(try call.parameter("id"), txt: change.txt)
        )
    }

    @Sendable static func withdraw(_ call: APIRequest) async throws -> Response {
        try await call.broker.advertisements.withdraw(try call.parameter("id"))
        return call.nothing
    }

    /// Advertises and says so, then every change of name or state. Withdrawn when the caller goes.
    @Sendable static func hold(_ call: APIRequest) async throws -> Response {
        let desk = call.broker.advertisements
        let held = try await desk.advertise(try checked(try await call.bodyOfHeldRequest(AdvertisementSpec.self)))
        // Somebody else may have withdrawn it by then.
        call.aftermath.add { try? await desk.withdraw(held.id) }
        return ServerSentEventStream.response(to: call.request) { events in
            var last = held
            try events.send("advertisement", held)
            for await _ in await desk.changes() {
                // Withdrawn by somebody else: there is nothing left to tell.
                guard let now = await desk.advertisements().first(where: { $0.id == held.id }) else { return }
                guard now != last else { continue }
                last = now
                try events.send("advertisement", now)
            }
        }
    }

    private static func checked(_ spec: AdvertisementSpec) throws -> AdvertisementSpec {
        if let problem = spec.problem { throw Problem(.badRequest, problem) }
        return spec
    }
}
