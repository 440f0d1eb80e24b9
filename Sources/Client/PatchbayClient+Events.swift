package import Model
import NIOHTTP1

/// The live feed.
extension PatchbayClient {
    /// Follows the broker's lists until it ends the stream or the task is cancelled.
    ///
    /// - Parameters:
    ///   - revision: The last revision seen; the changes after it come first, or a snapshot where they are not known
    ///     any more. Without one, a snapshot comes first.
    ///   - handle: Called with each event, in order; while it runs nothing more is read.
    /// - Throws: `ClientError`, `CancellationError`, or what `handle` throws.
    package func followEvents(
        after revision: UInt64? = nil,
        _ handle: (BrokerEvent) async throws -> Void
    ) async throws {
        var call = OutgoingRequest(method: .GET, path: ["events"])
        call.lastEventID = revision.map(String.init)
        try await follow(call) { event in
            if let event = try brokerEvent(event) { try await handle(event) }
        }
    }

    /// An event of a name that is not known here is left out: a newer broker may have more to say.
    private func brokerEvent(_ event: ServerSentEvent) throws -> BrokerEvent? {
        switch event.name {
        case "snapshot": .snapshot(try decode(EndpointList.self, from: event.data.utf8, what: "a snapshot event"))
        case "endpoint": .endpoint(try decode(EndpointChange.self, from: event.data.utf8, what: "an endpoint event"))
        case "devices": .devices(try decode(DeviceList.self, from: event.data.utf8, what: "a devices event"))
        default: nil
        }
    }
}

/// One change of what the broker lists.
package enum BrokerEvent: Hashable, Sendable {
    /// The whole list: at the start, and when the changes since the last event are no longer known.
    case snapshot(EndpointList)
    case endpoint(EndpointChange)
    /// All phones, whenever one comes or goes.
    case devices(DeviceList)
}
