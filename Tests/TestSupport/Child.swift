import Glibc
import Synchronization
import SystemIO

/// A child process, from its start until it is reaped.
///
/// One thread starts the process and waits for it. The kernel kills the process when that thread ends (PR_SET_PDEATHSIG
/// in prctl(2) applies to the thread, not the process). That thread ends early only with the test process.
final class Child: Sendable {
    let processID: pid_t
    /// Contains one element after the process has ended.
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
                } catch { continuation.resume(throwing: error) }
            }
        }
    }

    /// Signals the whole process group. Does nothing after the process has ended.
    func send(_ signal: CInt) {
        isReaped.withLock { isReaped in
            if !isReaped { kill(-processID, signal) }
        }
    }

    private func reap() {
        // Reaps the process under the lock, so that `send` never signals a reused PID.
        var information = siginfo_t()
        while waitid(P_PID, id_t(processID), &information, WEXITED | WNOWAIT) < 0, errno == EINTR {}
        var status: CInt = 0
        isReaped.withLock { isReaped in
            // Kills the remaining processes of its group.
            kill(-processID, SIGKILL)
            while waitpid(processID, &status, 0) < 0, errno == EINTR {}
            isReaped = true
        }
        exit.say(ExitStatus(waitStatus: status))
        exit.finish()
    }
}
