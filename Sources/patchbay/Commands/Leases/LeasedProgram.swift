import ArgumentParser
import Client
import Glibc
import Model
import Synchronization

/// A program that runs while this process holds a lease.
struct LeasedProgram: Sendable {
    private let words: [String]
    private let environment: [String: String]
    private let spec: LeaseSpec
    /// The lease that the client held before; nil if there was none.
    private let held: Lease?
    private let client: PatchbayClient

    init(
        _ words: [String],
        environment: [String: String],
        spec: LeaseSpec,
        held: Lease?,
        client: PatchbayClient
    ) {
        self.words = words
        self.environment = environment
        self.spec = spec
        self.held = held
        self.client = client
    }

    /// Takes the lease, runs the program, and ends the lease. A lease that the client held before is renewed and not
    /// ended. The program gets the signals of this process.
    ///
    /// - Throws: `ClientError`; `CLIError` if the program cannot be started, or if the lease ended before the
    ///   program; `ExitCode` with the status of the program.
    func run() async throws {
        let kept = try await keepHeldLease()
        let lease: Lease
        if let kept { lease = kept } else { lease = try await client.leases.take(spec) }
        let result: Result<CInt, any Error>
        do { result = .success(try await runProgram(under: lease)) } catch { result = .failure(error) }
        var loss: ClientError?
        do {
            // The renewal shows whether the lease lasted until the end of the program.
            if kept == nil {
                try await client.leases.end(lease.id)
            } else {
                _ = try await client.leases.take(Self.renewal(of: lease, for: spec))
            }
        } catch {
            loss = Self.loss(from: error)
            if loss == nil {
                let verb = kept == nil ? "ended" : "renewed"
                try? Console.errors().line("warning: the lease of \(spec.endpoint) could not be \(verb): \(error)")
            }
        }
        let status = try result.get()
        if let loss { throw Self.loss(of: spec.endpoint, because: loss, status: status) }
        guard status == 0 else { throw ExitCode(status) }
    }

    /// Renews the lease that the client held before.
    ///
    /// - Returns: Nil if there is none, also because it has ended meanwhile.
    private func keepHeldLease() async throws -> Lease? {
        guard let held else { return nil }
        do { return try await client.leases.take(Self.renewal(of: held, for: spec)) } catch {
            guard Self.loss(from: error) != nil else { throw error }
            return nil
        }
    }

    /// Returns the request that renews a lease and never shortens it.
    static func renewal(of lease: Lease, for spec: LeaseSpec) -> LeaseSpec {
        let seconds = max(lease.seconds, spec.seconds ?? 0)
        return LeaseSpec(endpoint: spec.endpoint, seconds: seconds, note: spec.note, renew: lease.id)
    }

    /// Returns the failure to renew or end a lease if it shows that the lease had ended before.
    ///
    /// There is no such lease, or the grant of this client has ended. A broker that started meanwhile may have given the
    /// ID to another client.
    static func loss(from error: any Error) -> ClientError? {
        guard let error = error as? ClientError else { return nil }
        let isLoss =
            switch error {
            case .refused(let problem): [.notFound, .unauthorized, .forbidden].contains(problem.code)
            case .keyRefused: true
            default: false
            }
        return isLoss ? error : nil
    }

    /// Returns the error for a lease that ended before the program. A failure of the program stays the exit code.
    static func loss(of endpoint: EndpointID, because reason: ClientError, status: CInt) -> CLIError {
        CLIError(
            status: .temporary,
            message: "other clients may have used \(endpoint) during the command: \(reason)",
            hint: "patchbay lease \(endpoint) --wait 5m -- COMMAND",
            exitCode: status == 0 ? nil : status
        )
    }

    /// Returns the exit status of the program.
    private func runProgram(under lease: Lease) async throws -> CInt {
        let process = try SignalForwarder.forwarding { try ProgramStarter.start(words, environment) }
        return await withTaskGroup(of: Void.self) { group in
            group.addTask { await renew(lease) }
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

    /// Renews the lease at half of its length, until the task is cancelled or the lease has ended.
    private func renew(_ lease: Lease) async {
        let renewal = Self.renewal(of: lease, for: spec)
        // Half of the length leaves time for a second attempt after a failure.
        while (try? await Task.sleep(for: .milliseconds(lease.seconds * 500))) != nil {
            do { _ = try await client.leases.take(renewal) } catch {
                guard !Task.isCancelled else { break }
                try? Console.errors().line("warning: the lease could not be renewed: \(error)")
                if Self.loss(from: error) != nil { break }
            }
        }
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
