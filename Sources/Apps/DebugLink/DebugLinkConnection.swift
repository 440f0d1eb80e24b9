import Logging
import Synchronization
import SystemIO

/// The connection of one app, until it ends.
struct DebugLinkConnection: Sendable {
    let app: Int
    let peer: SocketAddress
    let stream: DebugLinkSocket
    let apps: DebugAppTable
    let limits: DebugLinkLimits
    let incompleteFrames: IncompleteFrameLimiter
    let tee: DebugLinkTee?
    let logger: Logger

    /// Receives the app's messages until it disconnects or sends something else. Returns early when cancelled.
    func serve() async {
        await withTaskGroup(of: Void.self) { group in
            if let tee { group.addTask { await tee.run() } }
            var failure: String?
            var isStopping = false
            do { try await receiveMessages() } catch is CancellationError {
                isStopping = true
            } catch {
                failure = "\(error)"
            }
            let end = await apps.disconnect(app, because: failure)
            if !isStopping { log(end) }
            group.cancelAll()
        }
    }

    private func log(_ end: DebugConnectionEnd) {
        switch end {
        case .unused, .repeatedRefusal: break
        case .refusal(let reason):
            logger.warning(
                "a client of the state debugger was refused; it sent no message of an app",
                metadata: ["peer": "\(peer)", "reason": "\(reason)"]
            )
        case .disconnect(let failure):
            logger.info(
                "an app of the state debugger disconnected",
                metadata: ["app": "\(app)", "peer": "\(peer)", "reason": "\(failure ?? "closed by the app")"]
            )
        }
    }

    /// Receives messages until the end of the stream. The app's next bytes stay in the socket until a message is stored.
    private func receiveMessages() async throws {
        var decoder = DebugFrameDecoder(limit: limits.frame)
        var incompleteBytes = 0
        var isStalled = false
        defer { incompleteFrames.remove(incompleteBytes) }
        while true {
            let limit = incompleteBytes > 0 && !isStalled ? limits.frameIdle : nil
            guard let bytes = try await stream.receive(within: limit) else {
                try await reportStall(
                    .stalledInFrame(
                        received: incompleteBytes,
                        length: decoder.length,
                        seconds: Int(limits.frameIdle.components.seconds)
                    )
                )
                isStalled = true
                continue
            }
            if isStalled {
                await apps.setStall(nil, of: app)
                isStalled = false
            }
            if bytes.isEmpty {
                guard decoder.incompleteBytes == 0 else { throw DebugLinkError.endedInFrame }
                return
            }
            decoder.append(bytes)
            while let content = try decoder.next(), let framing = decoder.framing {
                if await apps.receive(try DebugMessage(parsing: content), in: framing, from: app) {
                    logger.info(
                        "an app of the state debugger connected",
                        metadata: ["app": "\(app)", "peer": "\(peer)"]
                    )
                }
                await tee?.forward(framing.frame(content))
            }
            incompleteFrames.remove(incompleteBytes)
            incompleteBytes = decoder.incompleteBytes
            try incompleteFrames.add(incompleteBytes)
        }
    }

    /// Reports an app that stopped in the middle of a frame. The app stays connected, because it may be stopped at a
    /// breakpoint. A client without a message so far is no app, and is disconnected.
    private func reportStall(_ stall: DebugLinkError) async throws {
        guard await apps.setStall("\(stall)", of: app) else { throw stall }
        logger.warning(
            "an app of the state debugger stopped in a frame",
            metadata: ["app": "\(app)", "peer": "\(peer)", "reason": "\(stall)"]
        )
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
