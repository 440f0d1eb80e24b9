import Glibc
import Model
import SystemIO

/// Starts other programs, with no signal blocked or ignored.
///
/// exec(3) resets handlers to the default, but neither ignored signals nor the mask. A thread of the concurrency runtime
/// blocks most signals, and this process ignores SIGPIPE.
enum ProgramStarter {
    /// Starts a program that shares the standard streams of this process.
    ///
    /// - Parameters:
    ///   - words: The program's file, or its name in `$PATH`, and the arguments.
    ///   - environment: The environment variables.
    /// - Returns: The process ID.
    /// - Throws: `CLIError` if the program cannot be started.
    static func start(_ words: [String], _ environment: [String: String]) throws(CLIError) -> pid_t {
        let arguments = words.map { strdup($0) } + [nil]
        let variables = environment.map { strdup("\($0.key)=\($0.value)") } + [nil]
        defer { for text in arguments + variables { free(text) } }
        var attributes = posix_spawnattr_t()
        posix_spawnattr_init(&attributes)
        defer { posix_spawnattr_destroy(&attributes) }
        posix_spawnattr_setflags(&attributes, CShort(POSIX_SPAWN_SETSIGMASK | POSIX_SPAWN_SETSIGDEF))
        var signals = sigset_t()
        sigemptyset(&signals)
        posix_spawnattr_setsigmask(&attributes, &signals)
        sigaddset(&signals, SIGPIPE)
        posix_spawnattr_setsigdefault(&attributes, &signals)
        var process: pid_t = 0
        let code = posix_spawnp(&process, words[0], nil, &attributes, arguments, variables)
        guard code == 0 else { throw error(of: words[0], code) }
        return process
    }

    /// Replaces this process by a program.
    ///
    /// - Parameter words: The program's file, or its name in `$PATH`, and the arguments.
    /// - Throws: `CLIError` if the program cannot be started.
    static func replaceProcess(by words: [String]) throws(CLIError) -> Never {
        signal(SIGPIPE, SIG_DFL)
        var signals = sigset_t()
        sigemptyset(&signals)
        pthread_sigmask(SIG_SETMASK, &signals, nil)
        let arguments = words.map { strdup($0) } + [nil]
        execvp(words[0], arguments)
        let code = errno
        for text in arguments { free(text) }
        throw error(of: words[0], code)
    }

    private static func error(of program: String, _ code: CInt) -> CLIError {
        let name = SanitizedText(program)
        let reason = SocketError.message(for: code)
        return CLIError.notFound("\(name) cannot be started: \(reason)", try: "check the name, or give its path")
    }
}
