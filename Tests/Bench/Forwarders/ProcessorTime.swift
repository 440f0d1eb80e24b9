import Glibc

/// The processor time of each process.
struct ProcessorTime: Sendable {
    private let seconds: [Int32: Double]

    /// Reads the time of running processes, including ended threads (clock_getcpuclockid(3)), which `schedstat` omits.
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

    /// Returns the seconds used since `before` by the processes that still run, including new ones.
    func spent(since before: ProcessorTime) -> Double {
        seconds.map { $1 - before.seconds[$0, default: 0] }.reduce(0, +)
    }
}
