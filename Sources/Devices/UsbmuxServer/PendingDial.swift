import Glibc
import Model
import Synchronization
import SystemIO

/// A dial that races with the client's disconnect, and its result.
///
/// A child task cannot return a noncopyable `Connection`, so the task stores the connection here. An unused connection
/// is closed with this object.
final class PendingDial: Sendable {
    private let stored = Mutex<Connection?>(nil)

    init() {}

    /// True if a connection is stored.
    var isFilled: Bool { stored.withLock { $0 != nil } }

    /// Stores a connection.
    func put(_ connection: consuming Connection) {
        var connection = Optional(connection)
        stored.withLock { $0 = connection.take() }
    }

    /// Removes and returns the connection.
    func take() -> Connection? { stored.withLock { $0.take() } }

    /// Dials for a waiting client and stores the connection here. Reads no bytes from the client.
    ///
    /// A client disconnect and a task cancellation both abort the dial.
    ///
    /// - Returns: The reason of a failed dial. Nil if there is a connection, or if the client or the task is gone.
    func dial(
        for client: CInt,
        _ dial: @escaping @Sendable () async throws -> Connection
    ) async -> DialError? {
        do {
            _ = try await withCancellation(when: { try await Self.waitForDisconnect(of: client) }) { [self] in
                put(try await dial())
            }
            return nil
        } catch let failure as DialError {
            return failure
        } catch is CancellationError {
            return nil
        } catch {
            return DialError(.failed, "the target could not be reached: \(error)")
        }
    }

    /// Returns when the client has closed and left no bytes. Waits for cancellation if it has left some.
    private static func waitForDisconnect(of client: CInt) async throws {
        if (try? await Poller.shared.wait(for: .hungUp, of: client)) != nil {
            // Bytes that the client sent before its close still have to be delivered: a unix client may write and close at
            // once.
            var byte: UInt8 = 0
            if recv(client, &byte, 1, CInt(MSG_PEEK)) <= 0 { return }
        }
        try await Promise<Void>().value()
    }
}
