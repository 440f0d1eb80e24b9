/// The poller's thread as a place where tasks run.
extension Poller: TaskExecutor {
    package func enqueue(_ job: consuming ExecutorJob) {
        // Its own thread looks at the jobs before it waits again.
        if jobs.add(job), !isOurThread { wakeUp() }
    }

    /// Runs the jobs that wait; not those that they bring about.
    ///
    /// - Returns: False when there were none.
    func runJobs() -> Bool {
        let batch = jobs.takeAll()
        for job in batch { job.runSynchronously(on: asUnownedTaskExecutor()) }
        return !batch.isEmpty
    }
}
