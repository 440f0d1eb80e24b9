import Logging
import Synchronization

/// The connection of one app, until it ends.
struct DebugLinkConnection: Sendable {
    let app: Int
    let stream: DebugLinkSocket
    let apps: DebugAppTable
    let frameLimit: Int
    let incompleteFrames: IncompleteFrameLimiter
    let tee: DebugLinkTee?
    let logger: Logger

    /// Receives the app's messages until it disconnects or sends something else. Returns early when cancelled.
    func serve() async {
        await withTaskGroup(of: Void.self) { group in
            if let tee { group.addTask { await tee.run() } }
            var failure: String?
            do { try await receiveMessages() } catch is CancellationError {
                failure = "the broker stopped listening"
            } catch {
                failure = "\(error)"
            }
            await apps.disconnect(app, because: failure)
            logger.info(
                "an app of the state debugger disconnected",
                metadata: ["app": "\(app)", "reason": "\(failure ?? "closed by the app")"]
            )
            group.cancelAll()
        }
    }

    /// Receives messages until the end of the stream. The app's next bytes stay in the socket until a message is stored.
    private func receiveMessages() async throws {
        var decoder = DebugFrameDecoder(limit: frameLimit)
        var incompleteBytes = 0
        defer { incompleteFrames.remove(incompleteBytes) }
        while true {
            let bytes = try await stream.receive()
            if bytes.isEmpty {
                guard decoder.incompleteBytes == 0 else { throw DebugLinkError.endedInFrame }
                return
            }
            decoder.append(bytes)
            while let content = try decoder.next(), let framing = decoder.framing {
                await apps.receive(try DebugMessage(parsing: content), in: framing, from: app)
                await tee?.forward(framing.frame(content))
            }
            incompleteFrames.remove(incompleteBytes)
            incompleteBytes = decoder.incompleteBytes
            try incompleteFrames.add(incompleteBytes)
        }
    }
}

/// Limits the memory for the incomplete frames of all apps.
final class IncompleteFrameLimiter: Sendable {
    private let limit: Int
    private let bytes = Mutex(0)

    /// Creates an empty count.
    ///
    /// - Parameter limit: The limit in bytes.
    init(limit: Int) { self.limit = limit }

    /// Adds the bytes of a frame, also above the limit. `remove` must follow.
    func add(_ count: Int) throws(DebugLinkError) {
        let total = bytes.withLock { bytes in
            bytes += count
            return bytes
        }
        guard total <= limit else { throw .tooManyIncompleteBytes(limit: limit) }
    }

    func remove(_ count: Int) { bytes.withLock { $0 -= count } }
}
