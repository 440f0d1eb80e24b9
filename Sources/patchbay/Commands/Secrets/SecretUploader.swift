import Client
import Model
import SystemIO

/// Uploads the tokens of a log to the broker. Retries while the broker is not running.
struct SecretUploader {
    enum Event: Sendable {
        case found(SessionURL)
        case broker(BrokerEvent)
        /// The input has ended.
        case inputEnded
        /// The grace period after the end of the input is over.
        case timeUp
    }

    let client: PatchbayClient
    /// Receives messages, which contain no tokens.
    let log: @Sendable (String) -> Void
    var clock = ContinuousClock()

    /// The time limit for pending uploads after the end of the input.
    private static let grace = Duration.seconds(10)

    /// Runs until the input has ended and all tokens are uploaded.
    ///
    /// - Throws: `CLIError` if a token could not be uploaded within the grace period.
    func run(
        _ events: AsyncStream<Event>,
        sendingTo continuation: AsyncStream<Event>.Continuation,
        selector: EndpointSelector?
    ) async throws {
        var queue = SecretUploadQueue(selector: selector)
        try await withThrowingDiscardingTaskGroup { group in
            var isSubscribed = false
            var hasEnded = false
            for await event in events {
                switch event {
                case .found(let url):
                    queue.add(url, at: clock.now)
                    if !isSubscribed { group.addTask { try await forwardEvents(to: continuation) } }
                    isSubscribed = true
                case .broker(.snapshot(let list)): queue.setEndpoints(list.endpoints)
                case .broker(.endpoint(let change)): queue.apply(change)
                case .broker(.devices), .broker(.hosts): break
                case .inputEnded:
                    hasEnded = true
                    group.addTask {
                        // Cancelled when all tokens are uploaded.
                        if (try? await clock.sleep(for: Self.grace)) != nil { continuation.yield(.timeUp) }
                    }
                case .timeUp: continuation.finish()
                }
                for upload in queue.dueUploads(at: clock.now) { try await send(upload, &queue) }
                if hasEnded, queue.isDone { continuation.finish() }
            }
            group.cancelAll()
        }
        try Task.checkCancellation()
        if let (port, obstacle) = queue.missing.first {
            throw CLIError(
                status: obstacle.status,
                message: "the secret of the app on port \(port) was not stored: \(obstacle.message)",
                candidates: obstacle.candidates,
                hint: (obstacle.hint.map { "\($0); " } ?? "") + "to store it manually: patchbay secret set ID"
            )
        }
    }

    private func send(_ upload: SecretUploadQueue.Upload, _ queue: inout SecretUploadQueue) async throws {
        do {
            try await client.secrets.set(upload.session.token.reveal(), of: upload.endpoint, on: upload.session.port)
            queue.didUpload(upload)
            log("stored the secret of \(upload.endpoint)")
        } catch let error as ClientError {
            // After a lost connection the next snapshot makes this upload due again.
            if error.isTemporary { return }
            queue.didReject(upload, CLIError(describing: error, command: "patchbay secret scan"))
            log("\(error)" + (error.hint.map { "; try: \($0)" } ?? ""))
        }
    }

    /// Forwards the broker's events until the task is cancelled.
    private func forwardEvents(to continuation: AsyncStream<Event>.Continuation) async throws {
        var backoff = Backoff.streaming
        var isAway = false
        while true {
            do {
                try await client.streamEvents { event in
                    isAway = false
                    backoff.reset()
                    continuation.yield(.broker(event))
                }
            } catch let error as ClientError {
                if !isAway { log("\(error); copying continues, and the secret is stored when the broker runs") }
                isAway = true
            } catch is CancellationError {
                return
            }
            if Task.isCancelled { return }
            try? await backoff.wait(clock: clock)
        }
    }
}
