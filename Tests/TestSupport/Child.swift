import Glibc
import SystemIO
import Synchronization

/// A process of ours, from its start until it is reaped.
///
/// One thread starts it and waits for it. The kernel kills the process when that thread ends (PR_SET_PDEATHSIG in prctl(2)
/// goes by thread, not by process), which can only be when the whole test process does.
final class Child: Sendable {
    let processID: pid_t
    /// One element, when the process has ended.
    let exit = Replay<ExitStatus>()
    private let isReaped = Mutex(false)

    private init(_ processID: pid_t) { self.processID = processID }

    static func start(_ spawn: @escaping @Sendable () throws -> pid_t) async throws -> Child {
        try await withCheckedThrowingContinuation { continuation in
            startThread(named: "rig-child") {
                do {
                    let child = Child(try spawn())
                    continuation.resume(returning: child)
                    child.reap()
                } catch {
                    continuation.resume(throwing: error)
                }
            }
        }
    }

    /// Signals the whole process group; nothing happens when the process has ended.
    func send(_ signal: CInt) {
        isReaped.withLock { isReaped in
            if !isReaped { kill(-processID, signal) }
        }
    }

    private func reap() {
        // Looked at first and reaped under the lock, so that `send` can never hit a number that somebody else has got.
        var information = siginfo_t()
        while waitid(P_PID, id_t(processID), &information, WEXITED | WNOWAIT) < 0, errno == EINTR {}
        var status: CInt = 0
        isReaped.withLock { isReaped in
            // What it left running in its group goes with it.
            kill(-processID, SIGKILL)
            while waitpid(processID, &status, 0) < 0, errno == EINTR {}
            isReaped = true
        }
        exit.say(ExitStatus(waitStatus: status))
        exit.finish()
    }
}
