import Glibc
import SystemIO

/// Replaces this process by another program.
enum ProgramReplacement {
    /// - Parameters:
    ///   - path: The program's file, or its name in `$PATH`.
    ///   - arguments: The arguments without the program's name.
    /// - Throws: `CLIError` if the program cannot be started.
    static func run(_ path: String, _ arguments: [String]) throws(CLIError) -> Never {
        // exec(3) resets handlers to the default, but neither ignored signals nor the mask. A thread of the concurrency
        // runtime blocks most signals.
        signal(SIGPIPE, SIG_DFL)
        var signals = sigset_t()
        sigemptyset(&signals)
        pthread_sigmask(SIG_SETMASK, &signals, nil)
        var words: [UnsafeMutablePointer<CChar>?] = ([path] + arguments).map { strdup($0) }
        words.append(nil)
        execvp(path, words)
        let reason = SocketError.message(for: errno)
        for word in words { free(word) }
        throw CLIError(status: .notFound, message: "\(path) cannot be started: \(reason)", hint: "which \(path)")
    }
}
