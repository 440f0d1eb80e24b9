import Model
import Synchronization

/// A report of a session with an app.
enum UpstreamSessionEvent: Hashable, Sendable {
    /// The app has announced a change.
    case change(ServerChange, EndpointID)
    /// A handshake over a shared session has succeeded, which may be with another launch.
    case connection(EndpointID)
}

/// The reports of the sessions with apps, for a single consumer.
///
/// A report that still waits is not added again, because its consumer reads the state after it. So the flood of an app
/// neither fills the memory nor delays the reports of other apps.
final class UpstreamSessionEvents: Sendable {
    private let waiting = Mutex<Set<UpstreamSessionEvent>>([])
    private let (events, continuation) = AsyncStream.makeStream(of: UpstreamSessionEvent.self)

    func send(_ event: UpstreamSessionEvent) {
        if waiting.withLock({ $0.insert(event).inserted }) { continuation.yield(event) }
    }

    /// Handles the reports until the task is cancelled.
    func handleEach(_ handle: (UpstreamSessionEvent) -> Void) async {
        for await event in events {
            // The same report is added again from here on, because it may follow the state that is read now.
            _ = waiting.withLock { $0.remove(event) }
            handle(event)
        }
    }
}
