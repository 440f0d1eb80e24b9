import Glibc
import Synchronization

/// Turns SIGINT, SIGTERM and SIGHUP into task cancellation, for commands that must clean up.
enum SignalHandler {
    /// The write end of a pipe. The handler only writes a byte (signal-safety(7)); a thread reads the pipe.
    private static let pipeEnd = Atomic<CInt>(-1)
    private static let signals = [SIGINT, SIGTERM, SIGHUP]

    /// Runs the body and cancels it on the first signal. A second signal terminates the process.
    ///
    /// - Throws: The body's error, or `CancellationError` after a signal.
    static func cancelOnSignal(_ body: @escaping @Sendable () async throws -> Void) async throws {
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
                    // Closing the write end stops the reader thread.
                    close(writeEnd)
                }
                try await body()
            }
            // `waitForAll` would not rethrow the signal's error before the body ends.
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
