import NIOCore

/// Runs a connection's tasks on the event loop that reads and writes it, so that neither a request nor its answer waits for
/// another thread to wake up.
///
/// Whatever such a task does keeps the loop's other connections waiting: what takes some milliseconds goes elsewhere, as JSON
/// that is large (`JSON.parse`) and images do.
final class EventLoopTaskExecutor: TaskExecutor {
    private let loop: any EventLoop

    init(_ loop: any EventLoop) { self.loop = loop }

    func enqueue(_ job: consuming ExecutorJob) {
        let job = UnownedJob(job)
        loop.execute { [self] in job.runSynchronously(on: asUnownedTaskExecutor()) }
    }
}
