import Glibc
import Synchronization

/// Ctrl-C, SIGTERM and a closed window as something to wait for, by a command that has to put things back first.
enum SignalHandler {
    /// What a signal's handler may do is next to nothing (signal-safety(7)): it writes here, and a thread does the rest.
    private static let pipeEnd = Atomic<CInt>(-1)
    private static let signals = [SIGINT, SIGTERM, SIGHUP]

    /// Runs the body; the first such signal cancels it. A second one ends the process as if there were no care.
    ///
    /// - Throws: What the body throws, or `CancellationError` after a signal.
    static func watch(_ body: @escaping @Sendable () async throws -> Void) async throws {
        var ends: [CInt] = [-1, -1]
        guard pipe(&ends) == 0 else { return try await body() }
        let (readEnd, writeEnd) = (ends[0], ends[1])
        pipeEnd.store(writeEnd, ordering: .sequentiallyConsistent)
        for number in signals { signal(number, handler) }
        defer { close(readEnd) }
        try await withThrowingTaskGroup { group in
            group.addTask {
                let isSignal = await BlockingThread.value {
                    var byte: UInt8 = 0
                    while read(readEnd, &byte, 1) < 0, errno == EINTR {}
                    return byte == 1
                }
                if isSignal { throw CancellationError() }
            }
            group.addTask {
                defer {
                    for number in signals { signal(number, SIG_DFL) }
                    pipeEnd.store(-1, ordering: .sequentiallyConsistent)
                    // The end of the pipe ends the thread.
                    close(writeEnd)
                }
                try await body()
            }
            // Not `waitForAll`, which would wait for the body before it says what the signal has thrown.
            while try await group.next() != nil {}
        }
    }

    private static let handler: @convention(c) (CInt) -> Void = { number in
        var byte: UInt8 = 1
        let descriptor = SignalHandler.pipeEnd.load(ordering: .sequentiallyConsistent)
        if descriptor >= 0 { write(descriptor, &byte, 1) }
        signal(number, SIG_DFL)
    }
}
