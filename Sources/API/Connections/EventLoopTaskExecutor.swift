import NIOCore

/// Runs the tasks of a connection on the event loop of its channel. Requests and responses then need no thread switch.
///
/// A task on the loop blocks the other connections of that loop. Work of several milliseconds runs elsewhere, such as
/// parsing large JSON (`JSON.parse`) and resizing images.
final class EventLoopTaskExecutor: TaskExecutor {
    private let loop: any EventLoop

    init(_ loop: any EventLoop) { self.loop = loop }

    func enqueue(_ job: consuming ExecutorJob) {
        let job = UnownedJob(job)
        loop.execute { [self] in job.runSynchronously(on: asUnownedTaskExecutor()) }
    }
}
