import AccessControl
import HTTPTypes
import Hummingbird
import Model
import NIOCore
import Registry

/// `/v1/events`: the endpoint list and every change of the list, together with the device list.
enum EventRoutes {
    @Sendable static func stream(_ request: APIRequest) async throws -> Response {
        let last = HTTPField.Name("Last-Event-ID").flatMap { request.httpRequest.headers[$0] }.flatMap { UInt64($0) }
        let services = request.services
        return ServerSentEventStream.response(to: request.httpRequest) { events in
            try await withThrowingTaskGroup(of: Void.self) { group in
                group.addTask { try await streamEndpoints(request, after: last, events) }
                // A client that may see only certain endpoints may not see devices.
                if request.principal.canSeeAllEndpoints {
                    group.addTask {
                        for await devices in await services.devices.deviceLists() {
                            try events.send("devices", ListResponse(devices))
                        }
                    }
                }
                // The registry drops a reader that is too slow. That ends the whole stream.
                try await group.next()
                group.cancelAll()
            }
        }
    }

    private static func streamEndpoints(_ request: APIRequest, after last: UInt64?, _ events: ServerSentEventStream)
        async throws
    {
        func send(_ change: EndpointChange) throws {
            if request.principal.canSee(change.endpoint) { try events.send("endpoint", change, id: change.revision) }
        }
        let (start, changes) = await request.services.registry.changes(after: last)
        switch start {
        case .replay(let missed):
            for change in missed { try send(change) }
        case .snapshot(let endpoints, let revision):
            // A client that asked for a replay must first discard its own list.
            if last != nil { try events.send("reset", [String: String]()) }
            let list = EndpointList(revision: revision, endpoints: request.visible(endpoints))
            try events.send("snapshot", list, id: revision)
        }
        for await change in changes { try send(change) }
    }
}

/// `/v1/status`, `/health`, `/openapi.json`.
enum StatusRoutes {
    private struct Health: Encodable {
        let status: String
        let version = Version.text
        /// One sentence without paths, because this route is public.
        let detail: String?
    }

    @Sendable static func show(_ request: APIRequest) async throws -> Response {
        let status = await request.services.status()
        return try request.json(request.principal.isOwner ? status : await request.redacted(status))
    }

    @Sendable static func health(_ request: APIRequest) async throws -> Response {
        guard await !request.services.storageProblems().isEmpty else {
            return try request.json(Health(status: "ok", detail: nil))
        }
        let detail = "the state folder cannot be written, so changes are refused; an owner's `patchbay status` says why"
        return try request.json(Health(status: "degraded", detail: detail))
    }

    @Sendable static func openAPI(_ request: APIRequest) async throws -> Response {
        Response(
            status: .ok,
            headers: [.contentType: "application/json"],
            body: ResponseBody(byteBuffer: ByteBuffer(string: OpenAPIDocument.text))
        )
    }
}

extension APIRequest {
    /// Returns the status for the holder of a grant: counts of visible objects only.
    fileprivate func redacted(_ status: BrokerStatus) async -> BrokerStatus {
        var status = status
        status.pid = nil
        status.findings = nil
        status.storage = nil
        let endpoints = visible(await services.registry.endpoints)
        status.endpoints = Dictionary(grouping: endpoints, by: \.state.rawValue).mapValues(\.count)
        status.tunnels = await tunnels().count
        if !principal.canSeeAllEndpoints {
            status.devices = 0
            status.sources = []
        }
        return status
    }
}
