import CLinux
import Glibc
import Synchronization

/// The end of a child process.
package struct ChildExit: Error, Hashable, Sendable {
    /// The exit status; nil after a signal, or if the process could not be started.
    package let status: CInt?
    /// The end of its standard error, at most `ChildProcess.errorLimit` bytes.
    package let errorOutput: String
}

/// A process that serves this one, such as `ssh`. It ends with its owner: with the object, and with this process.
///
/// One thread starts the process, reads its two streams and waits for its end. The process gets a standard input that
/// stays open and empty. The kernel sends SIGTERM if this process is killed, so no process is left.
package final class ChildProcess: Sendable {
    /// The number of bytes of standard error that are kept: a changed host key is reported by ssh in 900 bytes.
    package static let errorLimit = 4 << 10

    private struct State {
        var processID: pid_t?
        var isTerminated = false
        var exit: ChildExit?
        var waiters: [Promise<ChildExit>] = []
    }

    /// The part that the thread uses, so that the thread does not keep the owner's object alive.
    private final class Shared: Sendable {
        let state = Mutex(State())
        let announcement = Promise<String>()
    }

    private let shared = Shared()
    private let input: Descriptor

    /// Starts a program.
    ///
    /// - Parameters:
    ///   - path: The program's file.
    ///   - arguments: The arguments without the program's name.
    ///   - prefix: The beginning of the output line that `announcement` returns.
    /// - Throws: `SocketError` if the process has no free descriptors.
    package init(_ path: String, _ arguments: [String], announcing prefix: String) throws(SocketError) {
        let (inputRead, inputWrite) = try Self.pipe()
        let (outputRead, outputWrite) = try Self.pipe()
        let (errorRead, errorWrite) = try Self.pipe()
        input = Descriptor(owning: inputWrite)
        let shared = shared
        startThread(named: "patchbay-child") {
            let process = Self.spawn(path, arguments, inputRead, outputWrite, errorWrite)
            for end in [inputRead, outputWrite, errorWrite] { close(end) }
            var reader = ChildOutput(output: outputRead, errors: errorRead, prefix: prefix)
            guard process > 0 else {
                return Self.finish(shared, ChildExit(status: nil, errorOutput: SocketError.message(for: -process)))
            }
            let isTerminated = shared.state.withLock { state in
                state.processID = process
                return state.isTerminated
            }
            if isTerminated { kill(process, SIGTERM) }
            reader.readUntilEnd(of: process) { shared.announcement.complete(.success($0)) }
            Self.finish(shared, reader.exit(status: Self.reap(process, shared)))
        }
    }

    deinit { terminate() }

    package var isRunning: Bool { shared.state.withLock { $0.exit == nil } }

    /// Waits for an output line that begins with the prefix, and returns the rest of the line. May be called once.
    ///
    /// - Throws: `ChildExit` if the process ends before; `CancellationError`.
    package func announcement() async throws -> String { try await shared.announcement.value() }

    /// Waits for the end of the process. Throws `CancellationError`.
    package func exit() async throws -> ChildExit {
        let promise = Promise<ChildExit>()
        shared.state.withLock { state in
            if let exit = state.exit { promise.complete(.success(exit)) } else { state.waiters.append(promise) }
        }
        return try await promise.value()
    }

    /// Sends SIGTERM. Does nothing after the end.
    package func terminate() {
        shared.state.withLock { state in
            state.isTerminated = true
            if let process = state.processID { kill(process, SIGTERM) }
        }
    }

    private static func pipe() throws(SocketError) -> (read: CInt, write: CInt) {
        var ends: [CInt] = [-1, -1]
        try SocketError.check(pipe2(&ends, O_CLOEXEC), "pipe2", on: "a pipe to a program")
        return (ends[0], ends[1])
    }

    /// Returns the process ID, or the negative errno.
    private static func spawn(
        _ path: String,
        _ arguments: [String],
        _ input: CInt,
        _ output: CInt,
        _ errors: CInt
    ) -> pid_t {
        let words = ([path] + arguments).map { strdup($0) } + [nil]
        defer { for word in words { free(word) } }
        let process = CLinux_spawn(path, words, input, output, errors)
        return process > 0 ? process : -errno
    }

    /// Waits under the lock, so that `terminate` never signals a reused process ID. The process has ended already.
    private static func reap(_ process: pid_t, _ shared: Shared) -> CInt? {
        var status: CInt = 0
        shared.state.withLock { state in
            while waitpid(process, &status, 0) < 0, errno == EINTR {}
            state.processID = nil
        }
        // WIFEXITED and WEXITSTATUS of wait(2) are macros.
        return status & 0x7F == 0 ? status >> 8 & 0xFF : nil
    }

    private static func finish(_ shared: Shared, _ exit: ChildExit) {
        let waiters = shared.state.withLock { state in
            state.exit = exit
            defer { state.waiters = [] }
            return state.waiters
        }
        shared.announcement.complete(.failure(exit))
        for waiter in waiters { waiter.complete(.success(exit)) }
    }
}
