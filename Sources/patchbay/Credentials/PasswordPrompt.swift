import Glibc
import Synchronization

/// Reads a secret from a terminal without echo.
///
/// Restores the echo when a signal terminates the process. Suspending (Ctrl-Z) restores the echo for the shell; resuming
/// turns the echo off again.
///
/// Thread safety: signal handlers must not allocate or lock (signal-safety(7)). Therefore both terminal modes have a
/// fixed address. They are written before the handlers are installed and not changed while the handlers are installed.
enum PasswordPrompt {
    /// The terminal with disabled echo; -1 for none.
    private static let terminal = Atomic<CInt>(-1)
    /// The original mode and the mode without echo. A lock is not possible in a signal handler; see above for the order of
    /// accesses.
    nonisolated(unsafe) private static let modes = {
        let modes = UnsafeMutablePointer<termios>.allocate(capacity: 2)
        modes.initialize(repeating: termios(), count: 2)
        return modes
    }()

    private static let terminatingSignals = [SIGINT, SIGTERM, SIGHUP, SIGQUIT]
    /// The silence in milliseconds after which a paste has ended. Terminals send a paste at once.
    private static let pasteSilence: CInt = 200

    /// Prints the prompt and reads one line, and what was pasted with it; blocks. Only one prompt may be active at a time.
    ///
    /// A long secret is often pasted in several lines. The shell would otherwise run the further ones as commands.
    ///
    /// - Parameters:
    ///   - question: The prompt, written to standard error.
    ///   - descriptor: The terminal.
    ///   - limit: The maximum length of the line, in bytes.
    /// - Returns: The line without its line break, with further lines of a paste behind line breaks. It is
    ///   `.nothing` at end of file or if the terminal cannot be used.
    static func line(_ question: String, from descriptor: CInt = STDIN_FILENO, limit: Int) -> LineReadResult {
        guard tcgetattr(descriptor, modes) == 0 else { return .nothing }
        modes[1] = modes[0]
        modes[1].c_lflag &= ~tcflag_t(ECHO)
        // ECHONL echoes the line break, so that the next output starts on a new line.
        modes[1].c_lflag |= tcflag_t(ICANON | ECHONL)
        terminal.store(descriptor, ordering: .sequentiallyConsistent)
        var before = terminatingSignals.map { ($0, signal($0, die)) }
        before.append((SIGTSTP, signal(SIGTSTP, pause)))
        before.append((SIGCONT, signal(SIGCONT, resume)))
        defer {
            tcsetattr(descriptor, TCSADRAIN, modes)
            terminal.store(-1, ordering: .sequentiallyConsistent)
            for (number, handler) in before { signal(number, handler) }
        }
        guard tcsetattr(descriptor, TCSAFLUSH, modes + 1) == 0 else { return .nothing }
        _ = BlockingThread.write(Array(question.utf8), to: STDERR_FILENO)
        let result = LineReadResult.read(from: descriptor, limit: limit)
        if result == .nothing { return result }
        let rest = pastedRest(from: descriptor, limit: limit)
        guard case .line(let line) = result, line.count + rest.count <= limit else { return .tooLong }
        return .line(rest.isEmpty ? line : line + [UInt8(ascii: "\n")] + rest)
    }

    /// Reads the input that has arrived behind the first line, also an incomplete line. Keeps one byte above the limit.
    private static func pastedRest(from descriptor: CInt, limit: Int) -> [UInt8] {
        var mode = modes[1]
        // In canonical mode, a line without its end cannot be read (termios(3)).
        mode.c_lflag &= ~tcflag_t(ICANON)
        guard tcsetattr(descriptor, TCSANOW, &mode) == 0 else { return [] }
        var rest: [UInt8] = []
        var buffer = [UInt8](repeating: 0, count: 4_096)
        var ready = pollfd(fd: descriptor, events: Int16(POLLIN), revents: 0)
        while poll(&ready, 1, pasteSilence) > 0 {
            let count = read(descriptor, &buffer, buffer.count)
            guard count > 0 else { break }
            rest += buffer.prefix(count).prefix(limit + 1 - rest.count)
        }
        return rest
    }

    private static let die: @convention(c) (CInt) -> Void = { number in
        PasswordPrompt.setMode(0)
        signal(number, SIG_DFL)
        raise(number)
    }

    private static let pause: @convention(c) (CInt) -> Void = { number in
        PasswordPrompt.setMode(0)
        signal(number, SIG_DFL)
        raise(number)
    }

    private static let resume: @convention(c) (CInt) -> Void = { _ in
        PasswordPrompt.setMode(1)
        signal(SIGTSTP, PasswordPrompt.pause)
    }

    private static func setMode(_ mode: Int) {
        let descriptor = terminal.load(ordering: .sequentiallyConsistent)
        if descriptor >= 0 { tcsetattr(descriptor, TCSANOW, modes + mode) }
    }
}
