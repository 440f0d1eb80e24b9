import Synchronization

/// Jobs that a thread of our own is to run, in the order in which they came.
struct JobQueue: ~Copyable, Sendable {
    private let jobs = Mutex<[UnownedJob]>([])

    var isEmpty: Bool { jobs.withLock { $0.isEmpty } }

    /// - Returns: Whether no other waits, so that the thread may have to be woken.
    func add(_ job: consuming ExecutorJob) -> Bool {
        let job = UnownedJob(job)
        return jobs.withLock { jobs in
            jobs.append(job)
            return jobs.count == 1
        }
    }

    /// All that wait. Whoever takes them runs them.
    func takeAll() -> [UnownedJob] {
        jobs.withLock { jobs in
            defer { jobs = [] }
            return jobs
        }
    }
}
