import TestSupport

/// The environment of a forwarder: nothing for iproxy, a broker for `patchbay iproxy`.
final class ForwarderFixture {
    private let forwarder: Forwarder
    private let rig: UsbmuxdFixture
    private let scratch: ScratchFolder
    private let broker: RunningBroker?

    init(_ forwarder: Forwarder, on rig: UsbmuxdFixture, in scratch: ScratchFolder) async throws {
        (self.forwarder, self.rig, self.scratch) = (forwarder, rig, scratch)
        broker = forwarder == .patchbay ? try await RunningBroker(in: scratch, phones: rig) : nil
    }

    /// Starts the forwarder with these arguments and does not wait until it listens.
    func start(_ arguments: [String]) async throws -> Program {
        if let broker { return try await broker.start(["iproxy"] + arguments) }
        // The C library buffers output to a pipe up to 4 KiB, which would delay the line about listening.
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

    /// Starts the forwarder with these arguments and returns when it listens.
    func forward(_ arguments: [String]) async throws -> Program {
        let program = try await start(arguments)
        try await program.waitForLine("waiting for connection")
        return program
    }

    /// Returns the exit status with these arguments, or nil if the forwarder keeps running.
    func ending(_ arguments: [String]) async throws -> (status: ExitStatus?, program: Program) {
        let program = try await start(arguments)
        let status = try? await program.exitStatus(within: forwarder.timeLimit)
        program.kill()
        for await _ in program.transcript.elements() {}
        return (status, program)
    }
}
