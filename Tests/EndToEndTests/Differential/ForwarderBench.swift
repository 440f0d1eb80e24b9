import TestSupport

/// What a forwarder needs to run on a rig: nothing for iproxy, a broker for `patchbay iproxy`.
final class ForwarderBench {
    private let forwarder: Forwarder
    private let rig: PhoneRig
    private let scratch: ScratchFolder
    private let broker: RunningBroker?

    init(_ forwarder: Forwarder, on rig: PhoneRig, in scratch: ScratchFolder) async throws {
        (self.forwarder, self.rig, self.scratch) = (forwarder, rig, scratch)
        broker = forwarder == .patchbay ? try await RunningBroker(in: scratch, phones: rig) : nil
    }

    /// Runs it with these arguments; it is not necessarily listening yet.
    func start(_ arguments: [String]) async throws -> Program {
        if let broker { return try await broker.start(["iproxy"] + arguments) }
        // Into a pipe it would say that it listens when 4 KiB have come together.
        return try await Program(
            "stdbuf",
            ["-oL", "iproxy"] + arguments,
            in: scratch,
            environment: rig.clientEnvironment
        )
    }

    /// Forwards local ports to ports of a phone; returns when it listens.
    func forward(_ pairs: [(local: UInt16, device: UInt16)], of udid: String = Phones.one) async throws -> Program {
        try await forward(["-u", udid] + pairs.map { "\($0.local):\($0.device)" })
    }

    /// Forwards as these arguments say; returns when it listens.
    func forward(_ arguments: [String]) async throws -> Program {
        let program = try await start(arguments)
        try await program.waitForLine("waiting for connection")
        return program
    }

    /// How it ends with these arguments, or nil when it stays.
    func ending(_ arguments: [String]) async throws -> (status: ExitStatus?, program: Program) {
        let program = try await start(arguments)
        let status = try? await program.exitStatus(within: forwarder.patience)
        program.kill()
        for await _ in program.transcript.elements() {}
        return (status, program)
    }
}
