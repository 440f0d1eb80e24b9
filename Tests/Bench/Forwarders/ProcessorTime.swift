import Glibc

/// How long processes have been on a processor, each by itself.
struct ProcessorTime: Sendable {
    private let seconds: [Int32: Double]

    /// Of processes that live. Threads that have ended are in it (clock_getcpuclockid(3)), which `schedstat` leaves out.
    init(of processes: [Int32]) {
        seconds = Dictionary(
            uniqueKeysWithValues: Set(processes).compactMap { process in
                var clock = clockid_t()
                var time = timespec()
                guard clock_getcpuclockid(process, &clock) == 0, clock_gettime(clock, &time) == 0 else { return nil }
                return (process, Double(time.tv_sec) + Double(time.tv_nsec) / 1e9)
            }
        )
    }

    /// What those that live now have used since then; one that was started meanwhile has used all of its time since.
    func spent(since before: ProcessorTime) -> Double {
        seconds.map { $1 - before.seconds[$0, default: 0] }.reduce(0, +)
    }
}
