import Glibc

/// The exit status of a program.
package enum ExitStatus: Sendable, Equatable {
    case exited(CInt)
    case signalled(CInt)

    /// Decodes a status of waitpid(2). The macros WIFSIGNALED and WEXITSTATUS are not imported into Swift.
    init(waitStatus: CInt) {
        let signal = waitStatus & 0x7f
        self = signal == 0 ? .exited((waitStatus >> 8) & 0xff) : .signalled(signal)
    }
}
