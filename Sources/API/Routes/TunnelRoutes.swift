import Hummingbird
import Model
import Tunnels

/// `/v1/tunnels`.
enum TunnelRoutes {
    @Sendable static func list(_ call: Call) async throws -> Response {
        try call.answer(TunnelList(tunnels: await call.broker.tunnels.list()))
    }

    @Sendable static func show(_ call: Call) async throws -> Response {
        let id = try call.parameter("id")
        guard let tunnel = await call.broker.tunnels.list().first(where: { $0.id == id }) else {
            throw TunnelError.noSuchTunnel(id)
        }
        return try call.answer(tunnel)
    }

    @Sendable static func open(_ call: Call) async throws -> Response {
        let spec = try await call.body(TunnelSpec.self)
        return try call.answer(try await call.broker.tunnels.create(spec, owner: call.caller), status: .created)
    }

    @Sendable static func remove(_ call: Call) async throws -> Response {
        try await call.broker.tunnels.remove(try call.parameter("id"))
        return call.nothing
    }

    @Sendable static func removeAll(_ call: Call) async throws -> Response {
        try call.answer(Removal(removed: try await call.broker.tunnels.removeAll()))
    }

    /// Opens tunnels and says first which; then why connections through them failed. They go when the caller does.
    @Sendable static func hold(_ call: Call) async throws -> Response {
        let specs = try await call.bodyOfHeldRequest([TunnelSpec].self)
        let table = call.broker.tunnels
        let held = try await table.hold(specs, owner: call.caller)
        let ids = Set(held.map(\.id))
        call.aftermath.add { await table.release(ids) }
        return EventStream.response(to: call.request) { events in
            try events.send("tunnels", held)
            for await event in await table.events() {
                guard case .connectionFailed(let tunnel, let failure) = event, ids.contains(tunnel) else { continue }
                try events.send(
                    "failure",
                    TunnelFailure(tunnel: tunnel, reason: failure.reason, detail: failure.description)
                )
            }
        }
    }
}
