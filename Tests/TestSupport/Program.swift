import FoundationEssentials
import Glibc
import Synchronization
import SystemIO

/// A real program that runs for one test.
///
/// The program leads its own process group, and signals go to the whole group. It ends with the test: the scratch
/// folder kills it, or the kernel does when the test process dies.
package final class Program: Sendable {
    package enum Input: Sendable {
        case nothing
        /// The input that the test writes with `write(_:)`.
        case pipe
    }

    package let name: String
    /// The lines of both output streams in the order in which they were read.
    package let transcript = Replay<Line>()
    private let child: Child
    private let input: Mutex<Descriptor?>

    /// Starts the program. Returns when the process runs, which may be before it is ready.
    ///
    /// The command is a path or the name of an installed program. The environment is added to the test's own. Without a
    /// namespace the program runs in the test's network. The limit is the soft `ulimit -n`.
    package init(
        _ command: String,
        _ arguments: [String] = [],
        in scratch: ScratchFolder,
        environment: [String: String] = [:],
        input: Input = .nothing,
        namespace: NetworkNamespace? = nil,
        descriptorLimit: Int? = nil
    ) async throws {
        var words = [try Executable.find("setpriv"), "--pdeathsig", "KILL", "--"]
        if let descriptorLimit { words += [try Executable.find("prlimit"), "--nofile=\(descriptorLimit):", "--"] }
        if let namespace { words += try namespace.commandPrefix() }
        words += [try Executable.find(command)] + arguments
        let environment = ProcessInfo.processInfo.environment.merging(environment) { $1 }
        let stdin = try Pipe()
        let stdout = try Pipe()
        let stderr = try Pipe()

        let ends = (stdin.readEnd.number, stdout.writeEnd.number, stderr.writeEnd.number)
        child = try await Child.start { [words] in
            try Spawn.start(words, environment: environment, input: ends.0, output: ends.1, error: ends.2)
        }
        name = String(command.split(separator: "/").last ?? "")
        self.input = Mutex(input == .pipe ? stdin.intoWriteEnd() : nil)

        let open = Atomic(2)
        let transcript = transcript
        let atEnd = { @Sendable in
            // The transcript is complete when both streams have ended.
            if open.subtract(1, ordering: .acquiringAndReleasing).newValue == 0 { transcript.finish() }
        }
        Line.read(stdout.intoReadEnd(), .output, into: transcript, atEnd: atEnd)
        Line.read(stderr.intoReadEnd(), .errors, into: transcript, atEnd: atEnd)
        scratch.atEnd { [self] in await end() }
    }

    package var processID: Int32 { child.processID }

    package var isRunning: Bool { child.exit.soFar.isEmpty }

    /// The lines of standard output so far.
    package var output: [String] { transcript.soFar.filter { $0.source == .output }.map(\.text) }

    /// All output, for the message of a failed test.
    package var log: String { transcript.soFar.map { "    \(name): \($0.text)" }.joined(separator: "\n") }

    /// Waits for a line that contains the text, including earlier lines.
    ///
    /// `start` is the number of transcript lines to skip.
    /// - Returns: The whole line.
    /// - Throws: `TestSupportError` with the actual output at the deadline, or when the program ends first.
    @discardableResult
    package func waitForLine(
        _ wanted: String,
        from start: Int = 0,
        within limit: Duration = eventLimit
    ) async throws -> String {
        let missing = { @Sendable [self] in "\(name) did not say “\(wanted)”, but\n\(log)\n" }
        return try await withDeadline(limit, missing) { [self] in
            for await line in transcript.elements(from: start) where line.text.contains(wanted) { return line.text }
            try Task.checkCancellation()
            throw TestSupportError("\(name) ended: \(missing())")
        }
    }

    /// Waits until the program has ended and its output is read. Does not wait for a child that keeps the output open.
    package func exitStatus(within limit: Duration = eventLimit) async throws -> ExitStatus {
        let status = try await withDeadline(limit, { [self] in "\(name) did not end; it said\n\(log)\n" }) { [self] in
            for await status in child.exit.elements() { return status }
            throw CancellationError()
        }
        _ = try? await withDeadline(.seconds(1), { "" }) { [self] in for await _ in transcript.elements() {} }
        return status
    }

    package func send(_ signal: CInt) { child.send(signal) }

    /// Sends SIGTERM.
    package func terminate() { send(SIGTERM) }

    /// Sends SIGKILL.
    package func kill() { send(SIGKILL) }

    /// Sends SIGSTOP: the program hangs with its sockets open.
    package func freeze() { send(SIGSTOP) }

    /// Sends SIGCONT: the program continues.
    package func thaw() { send(SIGCONT) }

    /// Writes to the program's standard input; blocks while the pipe is full.
    package func write(_ text: String) throws {
        signal(SIGPIPE, SIG_IGN)
        try input.withLock { input in
            guard let number = input?.number else { throw TestSupportError("\(name) has no input to write to") }
            var bytes = Array(text.utf8)[...]
            while !bytes.isEmpty {
                let count = bytes.withUnsafeBytes { Glibc.write(number, $0.baseAddress, $0.count) }
                guard count > 0 else { throw TestSupportError(call: "write to \(name)") }
                bytes = bytes.dropFirst(count)
            }
        }
    }

    /// Closes the program's standard input.
    package func closeInput() { input.withLock { $0 = nil } }

    /// Runs a program until it exits.
    ///
    /// - Returns: The lines of its standard output.
    /// - Throws: `TestSupportError` with all output if the exit status is not 0.
    @discardableResult
    package static func run(
        _ command: String,
        _ arguments: [String] = [],
        in scratch: ScratchFolder,
        environment: [String: String] = [:],
        namespace: NetworkNamespace? = nil,
        within limit: Duration = eventLimit
    ) async throws -> [String] {
        let program = try await Program(command, arguments, in: scratch, environment: environment, namespace: namespace)
        let status = try await program.exitStatus(within: limit)
        for await _ in program.transcript.elements() {}
        guard status == .exited(0) else {
            throw TestSupportError("\(([command] + arguments).joined(separator: " ")): \(status)\n\(program.log)")
        }
        return program.output
    }

    /// Waits until the program has ended and returns all lines of both streams.
    package func lines(within limit: Duration = eventLimit) async throws -> [Line] {
        _ = try await exitStatus(within: limit)
        for await _ in transcript.elements() {}
        return transcript.soFar
    }

    private func end() async {
        closeInput()
        kill()
        for await _ in child.exit.elements() {}
    }
}
