import Model
import Synchronization
import SystemIO

/// Runs work with apps that no client waits for.
final class BackgroundTasks: Sendable {
    /// The limit of queued tasks. Further tasks are dropped to protect Patchbay from overload.
    private static let limit = 1_024
    /// The limit of concurrent background requests to one app. No limit is shared by apps, because a silent app would
    /// delay the requests to the others.
    static let maxConcurrentRequests = 2

    /// The limit of waiting requests to one app that no client waits for, such as responses to its pings. Further ones
    /// are dropped, because a small compressed body can contain many pings.
    static let maxWaitingRequests = 64

    typealias Work = @Sendable () async -> Void

    /// The permits of each app with background requests, with the number of these requests.
    private let permits = Mutex<[EndpointID: (semaphore: AsyncSemaphore, requests: Int)]>([:])
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
    func scheduleRequest(of app: EndpointID, _ send: @escaping @Sendable () async throws -> Void) {
        guard waitingRequests(of: app) < Self.maxWaitingRequests else { return }
        schedule { [self] in await runRequest(of: app, send) }
    }

    /// Returns the number of requests to an app that run or wait.
    func waitingRequests(of app: EndpointID) -> Int { permits.withLock { $0[app]?.requests ?? 0 } }

    /// Sends a request to an app from a task in progress, when fewer than `maxConcurrentRequests` of the app are running.
    func runRequest(of app: EndpointID, _ send: @Sendable () async throws -> Void) async {
        let semaphore = permits.withLock { permits in
            let semaphore = permits[app]?.semaphore ?? AsyncSemaphore(permits: Self.maxConcurrentRequests)
            permits[app] = (semaphore, (permits[app]?.requests ?? 0) + 1)
            return semaphore
        }
        defer {
            permits.withLock { permits in
                guard let (semaphore, requests) = permits[app] else { return }
                permits[app] = requests == 1 ? nil : (semaphore, requests - 1)
            }
        }
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
