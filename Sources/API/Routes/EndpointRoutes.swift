import AccessControl
import HummingbirdCore
import Model
import Registry
import ServiceLifecycle
import SystemIO
import Tunnels

/// `/v1/endpoints`.
enum EndpointRoutes {
    /// The maximum time that a request may wait for a change, in seconds.
    private static let maxWaitSeconds = 300

    static let listQuery: [APIRoute.Query] = [
        .integer("since", "Wait for a change newer than this revision"),
        .integer("waitSeconds", "Seconds to wait, at most 300"),
        .string("state", "Only endpoints in this state"),
        .string("app", "Only endpoints of this app"),
        .string("host", "Only endpoints of this host of the team"),
    ]

    /// Lists the endpoints. With `since` and `waitSeconds`, the request is a long poll. It returns after a newer revision,
    /// after the timeout, or when the broker stops.
    @Sendable static func list(_ request: APIRequest) async throws -> APIResponse {
        if let since = try request.query("since", as: UInt64.self) {
            let wait = min(try request.query("waitSeconds", as: Int.self) ?? 0, maxWaitSeconds)
            if wait > 0 { try request.requireStreamPlace() }
            await waitForChange(in: request.services.endpoints, after: since, for: .seconds(max(0, wait)))
        }
        let (endpoints, revision) = await request.services.endpoints.list
        let filter = try Filter(request)
        let visible = request.visible(endpoints).combined
        return try .json(EndpointList(revision: revision, endpoints: visible.filter(filter.matches)))
    }

    @Sendable static func show(_ request: APIRequest) async throws -> APIResponse {
        let endpoint = try await request.endpoint()
        let listed = request.visible(await request.services.endpoints.endpoints).combined
        return try .json(listed.first { $0.id == endpoint.id } ?? endpoint)
    }

    @Sendable static func add(_ request: APIRequest) async throws -> APIResponse {
        let endpoint = try await request.body(StaticEndpoint.self)
        if let problem = endpoint.validationError { throw Problem(.badRequest, problem.message) }
        let added = try await request.services.staticEndpoints.add(endpoint)
        // The response and the list then have the state and the time of a real connection. A failure is the state. A new
        // OpenAgents server is asked by `OpenAgentsIdentifier`.
        if added.kind != .openagents { try? await request.services.probe(added) }
        let listed = try await request.services.endpoints.endpoint(added.id)
        return try .created(request.principal.view(of: listed))
    }

    @Sendable static func remove(_ request: APIRequest) async throws -> APIResponse {
        let (id, services) = (try request.endpointID(), request.services)
        let endpoint = try await services.registry.endpoint(id)
        let wasStatic = try await services.staticEndpoints.remove(endpoint.id)
        do { try await services.registry.remove(endpoint.id) } catch RegistryError.stillPresent(let id) {
            if wasStatic {
                await services.disconnector.disconnect(endpoint, over: .addresses(endpoint.configuredRoutes))
            }
            try await services.registrations.requireNoRegistration(
                of: endpoint,
                toDo: "it would register again; it can be removed while it is offline"
            )
            throw RegistryError.stillPresent(id)
        }
        await services.disconnector.disconnect(endpoint, over: .all)
        // An endpoint that appears again needs a new approval.
        try await services.approvalService.revokeApproval(
            of: endpoint.id,
            isRemoved: true,
            by: request.principal.actor,
            from: request.principal.source
        )
        // Otherwise a crash within the next moments would list the endpoint again.
        do { try await services.registry.save() } catch let error as StateError {
            throw Problem(.unavailable, "\(endpoint.id) is removed, but that is not saved yet: \(error)")
        }
        return .noContent
    }

    @Sendable static func probe(_ request: APIRequest) async throws -> APIResponse {
        let endpoint = try await request.endpoint()
        if let host = endpoint.id.host { return try await request.probe(endpoint, on: host) }
        try await request.requireApproval(of: endpoint)
        try await request.services.probe(endpoint)
        return try .json(try await request.endpoint())
    }

    private static func waitForChange(in list: any EndpointListing, after revision: UInt64, for timeout: Duration)
        async
    {
        let hosts = list.hosts?.lists()
        let (start, changes) = await list.changes(after: revision)
        guard case .replay(let missed) = start, missed.isEmpty, await list.revision == revision else { return }
        await withTaskGroup(of: Void.self) { group in
            group.addTask { for await _ in changes { break } }
            if let hosts {
                // The first list is the current one.
                group.addTask { for await _ in hosts.dropFirst() { break } }
            }
            // The client's own timeout (`waitSeconds`). The wait also ends when the broker stops.
            group.addTask { try? await cancelWhenGracefulShutdown { try await Task.sleep(for: timeout) } }
            await group.next()
            group.cancelAll()
        }
    }

    /// The query parameters `state`, `app` and `host`.
    private struct Filter {
        let state: Endpoint.State?
        let app: String?
        let host: String?

        init(_ request: APIRequest) throws {
            app = request.query("app")
            host = request.query("host")?.lowercased()
            if let name = host.flatMap({ HostName($0) }) { try request.require([name]) }
            let text = request.query("state")
            state = text.flatMap(Endpoint.State.init(rawValue:))
            if let text, state == nil {
                throw Problem(
                    .badRequest,
                    "\"\(SanitizedText(text))\" is not a state; use online, suspect, offline or blocked"
                )
            }
        }

        func matches(_ endpoint: Endpoint) -> Bool {
            (state == nil || endpoint.state == state) && (app.map(endpoint.isApp) ?? true)
                && (host == nil || endpoint.host?.name.text == host)
        }
    }
}

/// `/v1/devices`.
enum DeviceRoutes {
    @Sendable static func list(_ request: APIRequest) async throws -> APIResponse {
        // A client that may see only certain endpoints may not see devices.
        try .json(
            ListResponse(request.principal.canSeeAllEndpoints ? await request.services.devices.devices() : [])
        )
    }

    /// Sets or removes an owner's note of a phone. The host of the phone keeps it.
    @Sendable static func setNote(_ request: APIRequest) async throws -> APIResponse {
        let udid = try udid(of: request)
        let note = try await request.body(DeviceNote.self)
        try await requireAttachedHere(udid, "keeps its note", request)
        try await request.services.deviceNotes.set(note, of: udid)
        return .noContent
    }

    /// Returns the phone of the path.
    static func udid(of request: APIRequest) throws -> UDID {
        let text = try request.parameter("udid")
        if let udid = UDID(text) { return udid }
        throw Problem(.notFound, "\"\(SanitizedText(text))\" is not a UDID", hint: "patchbay devices")
    }

    /// Throws if the phone is attached to another host of the team only, whose duty the text names.
    static func requireAttachedHere(_ udid: UDID, _ duty: String, _ request: APIRequest) async throws {
        let host = await request.services.devices.devices().first { $0.udid == udid }?.routes?.first?.host.name
        guard let host, host != request.principal.host else { return }
        throw Problem(
            .conflict,
            "\(udid) is attached to the host \(host), which \(duty)",
            hint: "add --broker ssh://USER@\(host)"
        )
    }
}
