import SystemIO

/// Runs work with apps that no client waits for.
final class BackgroundTasks: Sendable {
    /// The limit of queued tasks. Further tasks are dropped to protect Patchbay from overload.
    private static let limit = 1_024
    /// The limit of concurrent background requests to apps.
    private static let maxConcurrentRequests = 16

    typealias Work = @Sendable () async -> Void

    private let semaphore = AsyncSemaphore(permits: BackgroundTasks.maxConcurrentRequests)
    private let (tasks, queue) = AsyncStream.makeStream(
        of: Work.self,
        bufferingPolicy: .bufferingOldest(BackgroundTasks.limit)
    )

    /// Queues a task that mostly waits.
    ///
    /// - Returns: False if the queue is full and the task was dropped.
    @discardableResult
    func schedule(_ task: @escaping Work) -> Bool {
        if case .enqueued = queue.yield(task) { true } else { false }
    }

    /// Queues a request to an app. The error of a request is ignored.
    func scheduleRequest(_ send: @escaping @Sendable () async throws -> Void) {
        schedule { [self] in await runRequest(send) }
    }

    /// Sends a request to an app from a task in progress, when fewer than `maxConcurrentRequests` are running.
    func runRequest(_ send: @Sendable () async throws -> Void) async {
        guard let permit = try? await semaphore.acquire() else { return }
        // An app that is unreachable needs no notification, and a list is requested again after the next change.
        try? await send()
        permit.release()
    }

    /// Runs the queued tasks concurrently until the task is cancelled.
    func run() async {
        await withDiscardingTaskGroup { group in
            for await task in tasks { group.addTask { await task() } }
        }
    }
}
