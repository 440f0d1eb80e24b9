import HTTPTypes
import Hummingbird
import Model
import NIOCore
import Registry

/// `/v1/events`: the list as it stands, then every change of it; beside it the phones.
enum EventRoutes {
    @Sendable static func follow(_ call: APIRequest) async throws -> Response {
        let last = HTTPField.Name("Last-Event-ID").flatMap { call.request.headers[$0] }.flatMap { UInt64($0) }
        let broker = call.broker
        return ServerSentEventStream.response(to: call.request) { events in
            try await withThrowingTaskGroup(of: Void.self) { group in
                group.addTask { try await followEndpoints(call, after: last, events) }
                // Who may see some endpoints only has nothing to do with phones.
                if call.visitor.seesAll {
                    group.addTask {
                        for await devices in await broker.devices.deviceLists() {
                            try events.send("devices", DeviceList(devices: devices))
                        }
                    }
                }
                // The registry lets a reader go that is too slow; that ends the whole stream.
                try await group.next()
                group.cancelAll()
            }
        }
    }

    private static func followEndpoints(_ call: APIRequest, after last: UInt64?, _ events: ServerSentEventStream)
        async throws
    {
        func send(_ change: EndpointChange) throws {
            if call.visitor.sees(change.endpoint) { try events.send("endpoint", change, id: change.revision) }
        }
        let (start, changes) = await call.broker.registry.changes(after: last)
        switch start {
        case .replay(let missed):
            for change in missed { try send(change) }
        case .snapshot(let endpoints, let revision):
            // One who asked for a replay is told that it has none, so that it throws its own list away.
            if last != nil { try events.send("reset", [String: String]()) }
            let list = EndpointList(revision: revision, endpoints: call.seen(endpoints))
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
        /// A sentence without paths: anybody may ask.
        let detail: String?
    }

    @Sendable static func show(_ call: APIRequest) async throws -> Response {
        let status = await call.broker.status()
        return try call.answer(call.visitor.isOwner ? status : await call.own(of: status))
    }

    @Sendable static func health(_ call: APIRequest) async throws -> Response {
        guard await !call.broker.storageProblems().isEmpty else {
            return try call.answer(Health(status: "ok", detail: nil))
        }
        let detail = "the state folder cannot be written, so changes are refused; an owner's `patchbay status` says why"
        return try call.answer(Health(status: "degraded", detail: detail))
    }

    @Sendable static func openAPI(_ call: APIRequest) async throws -> Response {
        Response(
            status: .ok,
            headers: [.contentType: "application/json"],
            body: ResponseBody(byteBuffer: ByteBuffer(string: OpenAPIDocument.text))
        )
    }
}

extension APIRequest {
    /// What the holder of a grant is told: what is its own, and nothing by which to count that of others.
    fileprivate func own(of status: BrokerStatus) async -> BrokerStatus {
        var status = status
        status.pid = nil
        status.findings = nil
        status.storage = nil
        let endpoints = seen(await broker.registry.endpoints)
        status.endpoints = Dictionary(grouping: endpoints, by: \.state.rawValue).mapValues(\.count)
        status.tunnels = await tunnels().count
        if !visitor.seesAll {
            status.devices = 0
            status.sources = []
        }
        return status
    }
}
