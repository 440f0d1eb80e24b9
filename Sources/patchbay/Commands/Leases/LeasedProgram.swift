import ArgumentParser
import Client
import FoundationEssentials
import Glibc
import Model
import Synchronization

/// A program that runs while this process holds a lease.
struct LeasedProgram: Sendable {
    private let words: [String]
    private let spec: LeaseSpec
    private let client: PatchbayClient

    init(_ words: [String], spec: LeaseSpec, client: PatchbayClient) {
        self.words = words
        self.spec = spec
        self.client = client
    }

    /// Takes the lease, runs the program, and ends the lease. The program gets the signals of this process.
    ///
    /// - Throws: `ClientError`; `CLIError` if the program cannot be started; `ExitCode` with the status of the program.
    func run() async throws {
        let lease = try await client.takeLease(spec)
        let result: Result<CInt, any Error>
        do { result = .success(try await runProgram()) } catch { result = .failure(error) }
        // An owner may have ended the lease meanwhile.
        try? await client.endLease(lease.id)
        let status = try result.get()
        guard status == 0 else { throw ExitCode(status) }
    }

    private func runProgram() async throws -> CInt {
        let process = try SignalForwarder.forwarding { try Self.start(words) }
        return await withTaskGroup(of: Void.self) { group in
            group.addTask { await renew() }
            let status = await BlockingThread.value {
                var status: CInt = 0
                while waitpid(process, &status, 0) < 0, errno == EINTR {}
                return status
            }
            group.cancelAll()
            // WIFEXITED, WEXITSTATUS and WTERMSIG of wait(2) are macros. Shells report a signal as 128 and its number.
            return status & 0x7F == 0 ? status >> 8 & 0xFF : 128 + (status & 0x7F)
        }
    }

    /// Renews the lease at half of its length.
    private func renew() async {
        let seconds = spec.seconds ?? LeaseSpec.standardSeconds
        let renewal = LeaseSpec(endpoint: spec.endpoint, seconds: seconds, note: spec.note)
        while (try? await Task.sleep(for: .milliseconds(seconds * 500))) != nil {
            do { _ = try await client.takeLease(renewal) } catch {
                guard !Task.isCancelled else { return }
                try? Console.errors().line("warning: the lease could not be renewed: \(error)")
            }
        }
    }

    /// Starts a program that shares the standard streams of this process.
    private static func start(_ words: [String]) throws -> pid_t {
        let environment = ProcessInfo.processInfo.environment.map { "\($0.key)=\($0.value)" }
        let (arguments, variables) = (words.map { strdup($0) } + [nil], environment.map { strdup($0) } + [nil])
        defer { for text in arguments + variables { free(text) } }
        var process: pid_t = 0
        let code = posix_spawnp(&process, words[0], nil, nil, arguments, variables)
        guard code == 0 else {
            throw CLIError(
                status: .error,
                message: "\(SanitizedText(words[0])) could not be started: \(String(cString: strerror(code)))",
                hint: "check the name of the program"
            )
        }
        return process
    }
}

/// Keeps this process alive on signals while a program runs, and sends the signals on.
private enum SignalForwarder {
    private static let process = Atomic<pid_t>(0)

    /// Starts a program. From then on, SIGTERM and SIGHUP are sent to the program. A terminal sends SIGINT and SIGQUIT
    /// to both processes itself.
    static func forwarding(_ start: () throws -> pid_t) rethrows -> pid_t {
        // exec(3) resets handlers to the default, but not ignored signals.
        for number in [SIGINT, SIGQUIT] { signal(number) { _ in } }
        for number in [SIGTERM, SIGHUP] { signal(number, forward) }
        let started = try start()
        process.store(started, ordering: .sequentiallyConsistent)
        return started
    }

    private static let forward: @convention(c) (CInt) -> Void = { number in
        let process = process.load(ordering: .sequentiallyConsistent)
        if process > 0 { kill(process, number) }
    }
}
