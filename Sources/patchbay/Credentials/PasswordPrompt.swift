import Glibc
import Synchronization

/// Asks a person at a terminal for a secret, without showing what is typed.
///
/// Whatever ends the process meanwhile, the terminal echoes again: Ctrl-C, a signal, a closed window. When it is suspended
/// (Ctrl-Z) the shell gets its echo back, and the prompt goes on without it afterwards.
///
/// Thread safety: signal handlers may use nothing but what was there before they were set up, and no locks
/// (signal-safety(7)); hence the two modes at a fixed place, written once for each prompt, before and after the handlers.
enum PasswordPrompt {
    /// The terminal that does not echo now; -1 for none.
    private static let terminal = Atomic<CInt>(-1)
    /// How the terminal was, and how it is while somebody types.
    nonisolated(unsafe) private static let modes = {
        let modes = UnsafeMutablePointer<termios>.allocate(capacity: 2)
        modes.initialize(repeating: termios(), count: 2)
        return modes
    }()

    private static let deadly = [SIGINT, SIGTERM, SIGHUP, SIGQUIT]

    /// Asks, and reads one line; blocks. Only one prompt at a time.
    ///
    /// - Parameters:
    ///   - question: Written to standard error.
    ///   - descriptor: The terminal.
    ///   - limit: The longest line that is read, in bytes.
    /// - Returns: The line without its end; nothing when the input ended or the terminal cannot be used.
    static func line(_ question: String, from descriptor: CInt = STDIN_FILENO, limit: Int) -> LineInput {
        guard tcgetattr(descriptor, modes) == 0 else { return .nothing }
        modes[1] = modes[0]
        modes[1].c_lflag &= ~tcflag_t(ECHO)
        // The end of the line is shown, so that what comes next begins on one of its own.
        modes[1].c_lflag |= tcflag_t(ICANON | ECHONL)
        terminal.store(descriptor, ordering: .sequentiallyConsistent)
        var before = deadly.map { ($0, signal($0, die)) }
        before.append((SIGTSTP, signal(SIGTSTP, pause)))
        before.append((SIGCONT, signal(SIGCONT, resume)))
        defer {
            tcsetattr(descriptor, TCSADRAIN, modes)
            terminal.store(-1, ordering: .sequentiallyConsistent)
            for (number, handler) in before { signal(number, handler) }
        }
        guard tcsetattr(descriptor, TCSAFLUSH, modes + 1) == 0 else { return .nothing }
        _ = BlockingThread.write(Array(question.utf8), to: STDERR_FILENO)
        return LineInput.read(from: descriptor, limit: limit)
    }

    private static let die: @convention(c) (CInt) -> Void = { number in
        PasswordPrompt.show(0)
        signal(number, SIG_DFL)
        raise(number)
    }

    private static let pause: @convention(c) (CInt) -> Void = { number in
        PasswordPrompt.show(0)
        signal(number, SIG_DFL)
        raise(number)
    }

    private static let resume: @convention(c) (CInt) -> Void = { _ in
        PasswordPrompt.show(1)
        signal(SIGTSTP, PasswordPrompt.pause)
    }

    private static func show(_ mode: Int) {
        let descriptor = terminal.load(ordering: .sequentiallyConsistent)
        if descriptor >= 0 { tcsetattr(descriptor, TCSANOW, modes + mode) }
    }
}
