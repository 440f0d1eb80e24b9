import Synchronization
import SystemIO

/// The GET stream of a client session, on which the app sends its own requests.
///
/// The stream is open before a request is sent. Without the stream, a request of the app (`roots/list` of the Python
/// SDK) would be lost and the client's request would hang.
final class ClientSessionStream: Sendable {
    /// Reads the stream once. Calls `opened` when the head of the response has arrived.
    ///
    /// - Returns: Whether the stream must be opened again.
    typealias Read = @Sendable (_ opened: @escaping @Sendable () -> Void) async -> Bool

    /// The time that a request waits for the stream. A server that takes longer is assumed to have none.
    static let openingLimit = Duration.seconds(1)
    /// The pause after the stream ended during a request.
    private static let pause = Duration.milliseconds(500)

    private let clock: any Clock<Duration>
    private let tasks: BackgroundTasks
    /// The session ID of the stream in progress, and a promise that ends the stream.
    private let current = Mutex<(session: String, end: Promise<Void>)?>(nil)

    init(clock: any Clock<Duration>, tasks: BackgroundTasks) { (self.clock, self.tasks) = (clock, tasks) }

    /// Opens the stream of a session, unless it is open. Ends the stream of an earlier session.
    func open(_ session: String, within limit: Duration = ClientSessionStream.openingLimit, _ read: @escaping Read)
        async
    {
        let (opened, end) = (Promise<Void>(), Promise<Void>())
        let isNew = current.withLock { current in
            guard current?.session != session else { return false }
            current?.end.complete(.success(()))
            current = (session, end)
            return true
        }
        guard isNew else { return }
        tasks.schedule { [self] in
            _ = try? await withCancellation(when: { try await end.value() }) { [clock] in
                while await read({ opened.complete(.success(())) }) { try await clock.sleep(for: Self.pause) }
            }
            opened.complete(.success(()))
            current.withLock { current in if current?.end === end { current = nil } }
        }
        _ = try? await withTimeout(min(limit, Self.openingLimit), clock: clock) { try await opened.value() }
    }

    /// Ends the stream.
    func close() { current.withLock { $0?.end }?.complete(.success(())) }
}
