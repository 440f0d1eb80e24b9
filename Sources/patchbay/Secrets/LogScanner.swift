import Glibc

/// Copies standard input to standard output through a `SessionTokenFilter`, each piece as soon as it comes.
///
/// On a thread with blocking calls, because standard input may be a regular file, which epoll(7) does not take, and must
/// not be made non-blocking: a terminal is shared with the shell.
struct LogScanner {
    enum Ending: Sendable, Equatable {
        /// Everything is passed on, but for so many tokens.
        case finished(redactions: Int)
        /// Whoever read standard output is gone.
        case outputClosed
        case unreadable(errno: CInt)
    }

    var input = STDIN_FILENO
    var output = STDOUT_FILENO

    private static let chunk = 64 << 10

    /// Returns at the end of the input.
    ///
    /// - Parameter found: Called with each session, from the thread that copies; it must not block.
    /// - Returns: How it ended.
    func run(_ found: @escaping @Sendable (SessionURL) -> Void) async -> Ending {
        let (input, output) = (input, output)
        return await BlockingThread.value {
            var filter = SessionTokenFilter()
            var buffer = [UInt8](repeating: 0, count: Self.chunk)
            while true {
                let count = read(input, &buffer, Self.chunk)
                if count == 0 { break }
                if count < 0 {
                    if BlockingThread.isPassing(input, POLLIN) { continue }
                    return .unreadable(errno: errno)
                }
                let (passed, sessions) = filter.feed(buffer[..<count])
                let isRead = BlockingThread.write(passed, to: output)
                for session in sessions { found(session) }
                if !isRead { return .outputClosed }
            }
            for session in filter.finish() { found(session) }
            return .finished(redactions: filter.redactions)
        }
    }
}
