package import Model
import NIOCore

/// A change of the broker's lists.
package enum BrokerEvent: Hashable, Sendable {
    /// The whole list: at the beginning, and when the changes since the last event are no longer available.
    case snapshot(EndpointList)
    case endpoint(EndpointChange)
    /// All devices, whenever a device is attached or detached.
    case devices([Device])
    /// All other hosts of the team, whenever one changes. The endpoints of a host with `staleSince` may be outdated.
    case hosts([HostStatus])
}

extension SSEDecoder {
    /// Decodes the next part of a response.
    mutating func events(in buffer: ByteBuffer) throws(ClientError) -> [ServerSentEvent] {
        do throws(EventTooLarge) {
            return try append(buffer.readableBytesView)
        } catch {
            throw .invalidResponse(what: "the event stream", detail: "one event is larger than \(error.limit) bytes")
        }
    }
}
