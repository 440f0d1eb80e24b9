import AccessControl
import HTTPTypes
import HummingbirdCore
import Model
import NIOCore
import Registry

/// `/v1/events`: the endpoint list, the list of devices, and in a team the list of the other hosts.
///
/// The stream begins with the lists. Every change follows. With `topics`, further lists follow.
enum EventRoutes {
    static let query: [APIRoute.Query] = [
        .string(
            "topics",
            "all, or names separated by commas: "
                + (Topic.allCases.map(\.rawValue) + [Topic.activity]).joined(separator: ", ")
        )
    ]

    @Sendable static func stream(_ request: APIRequest) async throws -> APIResponse {
        try request.requireStreamPlace()
        let last = HTTPField.Name("Last-Event-ID").flatMap { request.httpRequest.headers[$0] }.flatMap { UInt64($0) }
        let services = request.services
        let topics = try request.query("topics").map(Topic.topics) ?? []
        let hasActivity = request.query("topics").map(Topic.includesActivity) ?? false
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
                if let hosts = services.endpoints.hosts {
                    group.addTask { try await streamHosts(hosts, request, events) }
                }
                for topic in Topic.allCases where topics.contains(topic) && topic.isVisible(to: request) {
                    group.addTask { try await stream(topic, request, events) }
                }
                if hasActivity {
                    group.addTask {
                        try await ActivityRoutes.stream(request) { events.send(Topic.activity, encoded: $0) }
                    }
                }
                group.addTask { try await services.owners.waitForEndOfSession(of: request.principal) }
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
            guard request.principal.canSee(change.endpoint) else { return }
            let view = request.principal.view(of: change.endpoint)
            let visible = EndpointChange(revision: change.revision, kind: change.kind, endpoint: view)
            try events.send("endpoint", visible, id: change.revision)
        }
        let (start, changes) = await request.services.endpoints.changes(after: last)
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

    /// Sends the document of a topic now and after each change, at most once a second.
    private static func stream(_ topic: Topic, _ request: APIRequest, _ events: ServerSentEventStream) async throws {
        let (reader, audience) = (request.services.topics, topic.audience(of: request))
        var sent: [UInt8]?
        while true {
            let document = await reader.document(of: topic, for: audience) { try await topic.document(for: request) }
            if let document, document != sent {
                events.send(topic.rawValue, encoded: document)
                sent = document
            }
            try await Task.sleep(for: TopicReader.interval)
        }
    }

    /// Sends the list of the other hosts now and after each change.
    ///
    /// When the team's registry becomes unreachable, this is the only event: the endpoints themselves have not changed.
    private static func streamHosts(
        _ hosts: ListedHosts,
        _ request: APIRequest,
        _ events: ServerSentEventStream
    ) async throws {
        var isFirst = true
        for await others in hosts.lists() {
            // A broker without a team has no such event, but one when it leaves its team.
            if isFirst, hosts.own == nil { continue }
            isFirst = false
            var visible = others
            if !request.principal.canSeeAllEndpoints {
                let names = Set(request.visible(await request.services.endpoints.endpoints).compactMap(\.host?.name))
                visible.removeAll { !names.contains($0.name) }
            }
            try events.send("hosts", ListResponse(visible))
        }
    }
}
