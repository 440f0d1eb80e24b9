import FoundationEssentials
import Glibc
import Model
import Synchronization
import SystemIO

/// The connection of this process to one broker through ssh: a local socket that leads to the broker's socket.
///
/// One login serves all requests. The first request starts ssh, and a request after the end of ssh starts it again. ssh
/// ends with this process (`ChildProcess`).
actor SSHForward {
    /// The local socket of a running ssh. Its file has been removed: the descriptor is the only way to it.
    final class LocalSocket: Sendable {
        private let handle: Descriptor
        /// The path of the socket on the other machine.
        let remotePath: String

        fileprivate init(_ handle: consuming Descriptor, remotePath: String) {
            self.handle = handle
            self.remotePath = remotePath
        }

        /// A path for connect(2), valid in this process while the object exists.
        var path: String { "/proc/self/fd/\(handle.number)" }
    }

    private struct Running {
        let login: ChildProcess
        let forward: ChildProcess
        let socket: LocalSocket

        var isAlive: Bool { login.isRunning && forward.isRunning }
    }

    private let destination: SSHDestination
    private let turn = AsyncSemaphore(permits: 1)
    private var running: Running?
    private var hasConnected = false
    /// The number of failed starts, and the last error.
    private var failures = 0
    private var lastFailure: (any Error)?

    /// The time for ssh to report its end after it closed a connection.
    private static let endLimit = Duration.milliseconds(250)

    private static let forwards = Mutex<[SSHDestination: SSHForward]>([:])

    /// Returns the one connection of this process to the destination.
    static func to(_ destination: SSHDestination) -> SSHForward {
        forwards.withLock { forwards in
            let forward = forwards[destination] ?? SSHForward(destination)
            forwards[destination] = forward
            return forward
        }
    }

    private init(_ destination: SSHDestination) { self.destination = destination }

    /// Returns the local socket; starts ssh first if it does not run.
    ///
    /// Has no timeout of its own: ssh may wait for a passphrase. Requests that wait for the same start share its error.
    /// - Throws: `ClientError`, `CancellationError`.
    func localSocket() async throws -> LocalSocket {
        if let running, running.isAlive { return running.socket }
        let known = failures
        let permit = try await turn.acquire()
        defer { permit.release() }
        if let running, running.isAlive { return running.socket }
        if failures > known, let lastFailure { throw lastFailure }
        running = nil
        do {
            let started = try await start()
            (running, hasConnected) = (started, true)
            return started.socket
        } catch {
            if !(error is CancellationError) { (failures, lastFailure) = (failures + 1, error) }
            throw error
        }
    }

    /// The path of the broker's socket on the other machine, once ssh has logged in.
    var remotePath: String? { running?.socket.remotePath }

    /// Returns the reason of the end of ssh after a request lost its connection; nil if ssh still runs.
    func endReason() async -> ClientError? {
        guard let running else { return nil }
        let exit = try? await withTimeout(Self.endLimit, clock: ContinuousClock()) {
            try await withThrowingTaskGroup(of: ChildExit.self) { group in
                for process in [running.forward, running.login] { group.addTask { try await process.exit() } }
                defer { group.cancelAll() }
                return try await group.next()
            }
        }
        return exit.flatMap { $0 }.map { failure($0, else: "ssh ended") }
    }

    private func start() async throws -> Running {
        let command = SSHCommand(destination: destination)
        let name = "/tmp/patchbay-ssh-\(getpid())-\(UInt64.random(in: 0 ... .max))"
        let shared = try await sharedControlSocket(command)
        let control = shared ?? "\(name).control"
        let login = try run(command.login(control: control, isShared: shared != nil))
        let remotePath = try await socketPath(announced(by: login))
        // ssh creates its sockets with mode 0600. Their names are needed only until the connections to them stand.
        let local = "\(name).sock"
        defer {
            unlink(local)
            if shared == nil { unlink(control) }
        }
        let program = try SSHCommand.program()
        let forward = try run(
            command.forward(program: program, from: local, to: remotePath, control: control),
            of: "/bin/sh"
        )
        _ = try await announced(by: forward)
        guard let handle = Descriptor(handleOf: local), isOwnSocket(handle.number) else {
            throw ClientError.sshFailed(
                to: destination,
                reason: "\(local) is missing",
                isLost: hasConnected
            )
        }
        return Running(login: login, forward: forward, socket: LocalSocket(handle, remotePath: remotePath))
    }

    /// Returns the control socket on which an ssh of the user shares its connection to the destination; nil if none does.
    private func sharedControlSocket(_ command: SSHCommand) async throws -> String? {
        let configuration = try run(command.configuration, announcing: SSHCommand.controlPathKey)
        do {
            let path = try await configuration.announcement()
            guard path.hasPrefix("/") else { return nil }
            return try await run(command.check(control: path)).exit().status == 0 ? path : nil
        } catch let exit as ChildExit {
            // Without a control socket there is no such line. An invalid configuration is an error.
            guard exit.status == 0 else { throw failure(exit, else: "ssh has no configuration") }
            return nil
        }
    }

    private func run(
        _ arguments: [String],
        of program: String? = nil,
        announcing prefix: String = SSHCommand.mark
    ) throws(ClientError) -> ChildProcess {
        let file: String
        if let program { file = program } else { file = try SSHCommand.program() }
        do throws(SocketError) {
            return try ChildProcess(file, arguments, announcing: prefix)
        } catch {
            throw .sshFailed(to: destination, reason: error.description, isLost: hasConnected)
        }
    }

    private func announced(by process: ChildProcess) async throws -> String {
        do {
            return try await process.announcement()
        } catch let exit as ChildExit {
            throw failure(exit, else: "ssh ended before the login was complete")
        }
    }

    /// Parses the announcement of the login: `found PATH`, `denied PATH` or `none`.
    private func socketPath(_ announcement: String) throws(ClientError) -> String {
        let words = announcement.split(separator: " ", maxSplits: 1).map(String.init)
        switch (words.first, words.count) {
        case ("found", 2): return words[1]
        case ("denied", 2): throw .noRemotePermission(destination, path: SanitizedText(words[1]).text)
        default: throw .noRemoteBroker(destination, path: destination.socket)
        }
    }

    /// True for a socket of this user without access for others. Another user could have taken the name in /tmp.
    private func isOwnSocket(_ handle: CInt) -> Bool {
        guard let status = FileStatus(of: handle) else { return false }
        return status.type == .socket && status.owner == geteuid() && status.isPrivate
    }

    private func failure(_ exit: ChildExit, else reason: String) -> ClientError {
        // The warning of a changed host key has lines that consist of @ only.
        let lines = exit.errorOutput.split(whereSeparator: \.isNewline)
            .map { $0.filter { $0 != "@" || !exit.errorOutput.contains("@@@@") }.trimmed }
            .filter { !$0.isEmpty && !$0.hasPrefix("Warning: Permanently added") }
        let text = SanitizedText(lines.joined(separator: " "), limit: ChildProcess.errorLimit).text
        return .sshFailed(to: destination, reason: text.isEmpty ? reason : text, isLost: hasConnected)
    }
}

extension String {
    /// The text without spaces and carriage returns at both ends.
    fileprivate var trimmed: String {
        let isBlank = { (character: Character) in character == " " || character == "\r" || character == "\t" }
        return String(drop(while: isBlank).reversed().drop(while: isBlank).reversed())
    }
}
