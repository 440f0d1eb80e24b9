import HTTPTypes
import Hummingbird
import Model
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
