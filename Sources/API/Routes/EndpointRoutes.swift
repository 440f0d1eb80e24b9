import Hummingbird
import Model
import Registry
import ServiceLifecycle

/// `/v1/endpoints`.
enum EndpointRoutes {
    /// How long a request may wait for a change, in seconds.
    private static let longestWait = 300

    /// `since` and `wait` make it a long poll: it answers when something is newer than that revision, when the time is up,
    /// or when the broker stops.
    @Sendable static func list(_ call: APIRequest) async throws -> Response {
        if let since = try call.query("since", as: UInt64.self) {
            let wait = min(try call.query("wait", as: Int.self) ?? 0, longestWait)
            await waitForNews(in: call.broker.registry, after: since, for: .seconds(max(0, wait)))
        }
        let (endpoints, revision) = await call.broker.registry.list
        let filter = try Filter(call)
        let seen = call.seen(endpoints)
        return try call.answer(EndpointList(revision: revision, endpoints: seen.filter(filter.admits)))
    }

    @Sendable static func show(_ call: APIRequest) async throws -> Response {
        try call.answer(try await call.endpoint())
    }

    @Sendable static func add(_ call: APIRequest) async throws -> Response {
        let endpoint = try await call.body(StaticEndpoint.self)
        if let problem = endpoint.problem { throw Problem(.badRequest, problem) }
        return try call.answer(try await call.broker.statics.add(endpoint), status: .created)
    }

    @Sendable static func forget(_ call: APIRequest) async throws -> Response {
        let id = try call.endpointID()
        _ = try await call.broker.statics.remove(id)
        try await call.broker.registry.forget(id)
        // Where it comes back, it needs a new approval.
        try await call.broker.trust.withdraw(from: id, by: call.visitor.caller, from: call.visitor.origin)
        return call.nothing
    }

    @Sendable static func probe(_ call: APIRequest) async throws -> Response {
        let endpoint = try await call.endpoint()
        try await call.checkTrust(in: endpoint)
        await call.broker.probe(endpoint)
        return try call.answer(try await call.endpoint())
    }

    private static func waitForNews(in registry: EndpointRegistry, after revision: UInt64, for patience: Duration) async
    {
        let (start, changes) = await registry.changes(after: revision)
        guard case .replay(let missed) = start, missed.isEmpty else { return }
        await withTaskGroup(of: Void.self) { group in
            group.addTask { for await _ in changes { break } }
            // The caller's own limit (`wait=`); who waits for news is answered as well when the broker stops.
            group.addTask { try? await cancelWhenGracefulShutdown { try await Task.sleep(for: patience) } }
            await group.next()
            group.cancelAll()
        }
    }

    /// `state=` and `app=`.
    private struct Filter {
        let state: Endpoint.State?
        let app: String?

        init(_ call: APIRequest) throws {
            app = call.request.uri.queryParameters.get("app")
            let text = call.request.uri.queryParameters.get("state")
            state = text.flatMap(Endpoint.State.init(rawValue:))
            if let text, state == nil {
                throw Problem(
                    .badRequest,
                    "\"\(SanitizedText(text))\" is no state; there are online, suspect, offline and blocked"
                )
            }
        }

        func admits(_ endpoint: Endpoint) -> Bool {
            (state == nil || endpoint.state == state) && (app.map(endpoint.isApp) ?? true)
        }
    }
}

/// `/v1/devices`.
enum DeviceRoutes {
    @Sendable static func list(_ call: APIRequest) async throws -> Response {
        // Who may see some endpoints only has nothing to do with phones.
        try call.answer(DeviceList(devices: call.visitor.seesAll ? await call.broker.devices.devices() : []))
    }
}
