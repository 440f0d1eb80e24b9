import Model
import NIOHTTP1

/// Event stream.
extension PatchbayClient {
    /// Streams changes of endpoints and devices until the broker ends the stream or the task is cancelled.
    ///
    /// - Parameters:
    ///   - revision: The last known revision. The stream begins with the changes after it, or with a snapshot if they
    ///     are no longer available. Nil begins with a snapshot.
    ///   - handle: Called with each event, in order. Meanwhile no more data is read.
    /// - Throws: `ClientError`, `CancellationError`, or the error of `handle`.
    package func streamEvents(
        after revision: UInt64? = nil,
        _ handle: (BrokerEvent) async throws -> Void
    ) async throws {
        var request = OutgoingRequest(method: .GET, path: ["events"], accept: "text/event-stream")
        if let revision { request.headers.append(("Last-Event-ID", "\(revision)")) }
        try await stream(request) { event in
            if let event = try brokerEvent(event) { try await handle(event) }
        }
    }

    /// Returns nil for an unknown event name, which a newer broker may send.
    private func brokerEvent(_ event: ServerSentEvent) throws -> BrokerEvent? {
        switch event.name {
        case "snapshot": .snapshot(try decode(EndpointList.self, from: event.data, what: "a snapshot event"))
        case "endpoint": .endpoint(try decode(EndpointChange.self, from: event.data, what: "an endpoint event"))
        case "devices":
            .devices(
                try decode(ListResponse<Device>.self, from: event.data, what: "a devices event").items
            )
        case "hosts":
            .hosts(try decode(ListResponse<HostStatus>.self, from: event.data, what: "a hosts event").items)
        default: nil
        }
    }
}
