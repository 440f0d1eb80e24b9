import Client
import Model

/// Brings the tokens that a stream shows to the broker, which may be away for as long as it likes.
struct SecretUploader {
    enum Event: Sendable {
        case found(SessionURL)
        case broker(BrokerEvent)
        /// The stream has ended; nothing more is found.
        case inputEnded
        /// What is not given by now is not waited for.
        case timeUp
    }

    let client: PatchbayClient
    /// Told what happened to which endpoint; never a token.
    let note: @Sendable (String) -> Void
    var clock = ContinuousClock()

    /// How long the end of the stream waits for a broker that has not got everything.
    private static let grace = Duration.seconds(10)
    private static let shortest = Duration.milliseconds(200)
    private static let longest = Duration.seconds(2)

    /// Returns when the stream has ended and all of its tokens are given.
    ///
    /// - Throws: `CLIError` when the stream has ended and the broker has not got them all.
    func run(
        _ events: AsyncStream<Event>,
        _ tell: AsyncStream<Event>.Continuation,
        _ selector: EndpointSelector?
    ) async throws {
        var deliveries = SecretUploadQueue(selector: selector)
        try await withThrowingDiscardingTaskGroup { group in
            var isFollowing = false
            var hasEnded = false
            for await event in events {
                switch event {
                case .found(let url):
                    deliveries.found(url, at: clock.now)
                    if !isFollowing { group.addTask { try await follow(tell) } }
                    isFollowing = true
                case .broker(.snapshot(let list)): deliveries.listed(list.endpoints)
                case .broker(.endpoint(let change)): deliveries.changed(change)
                case .broker(.devices): break
                case .inputEnded:
                    hasEnded = true
                    group.addTask {
                        // Cancelled when all of it is given sooner.
                        if (try? await clock.sleep(for: Self.grace)) != nil { tell.yield(.timeUp) }
                    }
                case .timeUp: tell.finish()
                }
                for due in deliveries.due(at: clock.now) { try await give(due, &deliveries) }
                if hasEnded, deliveries.isDone { tell.finish() }
            }
            group.cancelAll()
        }
        try Task.checkCancellation()
        if let (port, obstacle) = deliveries.missing.first {
            throw CLIError(
                status: obstacle.status,
                message: "the secret of the app on port \(port) is not with the broker: \(obstacle.message)",
                candidates: obstacle.candidates,
                remedy: (obstacle.remedy.map { "\($0); " } ?? "") + "by hand it is given with patchbay secret set ID"
            )
        }
    }

    private func give(_ due: SecretUploadQueue.Due, _ deliveries: inout SecretUploadQueue) async throws {
        do {
            try await client.setSecret(due.session.token.reveal(), of: due.endpoint, on: due.session.port)
            deliveries.given(due)
            note("the secret of \(due.endpoint) is with the broker")
        } catch let error as ClientError {
            // Where the broker went away, its list comes again once it is back, and this one is still due.
            if error.isPassing { return }
            deliveries.refused(due, CLIError(describing: error, command: "patchbay secret scan"))
            note("\(error)" + (error.remedy.map { "; try: \($0)" } ?? ""))
        }
    }

    /// Tells what the broker lists, until cancelled.
    private func follow(_ tell: AsyncStream<Event>.Continuation) async throws {
        var pause = Self.shortest
        var isAway = false
        while true {
            do {
                try await client.followEvents { event in
                    (pause, isAway) = (Self.shortest, false)
                    tell.yield(.broker(event))
                }
            } catch let error as ClientError {
                if !isAway { note("\(error); the secret waits for it, and everything else passes") }
                isAway = true
            } catch is CancellationError {
                return
            }
            if Task.isCancelled { return }
            try? await clock.sleep(for: pause)
            pause = min(pause * 2, Self.longest)
        }
    }
}
