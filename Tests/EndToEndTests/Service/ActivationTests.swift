import TestSupport
import Testing

/// Socket activation: clients wait while no daemon runs, because systemd owns the listening socket.
@Suite(.needs(.python, .systemd), .scratchFolder) struct ActivationTests {
    private let scratch = ScratchFolder.current

    @Test func `a client of the systemd socket starts the broker and is answered, and the socket file remains`()
        async throws
    {
        let socket = scratch.file("p.sock")
        let variables = environment(in: scratch).flatMap { ["--setenv=\($0)=\($1)"] }
        let daemon = try await Program(
            "systemd-socket-activate",
            ["--listen=\(socket)"] + variables + [
                try Executable.built("patchbayd"), "--state-directory", scratch.file("state"),
            ],
            in: scratch
        )
        try await daemon.waitForLine("Listening on \(socket)")
        #expect(!daemon.log.contains("the API is open"))

        let status = try await Program.run(Executable.built("patchbay"), ["status", "--socket", socket], in: scratch)

        #expect(status.contains { $0.contains("process \(daemon.processID)") }, "\(status)")
        #expect(daemon.log.contains("the socket passed by systemd"))
        daemon.terminate()
        #expect(try await daemon.exitStatus() == .exited(0))
        #expect(try await Program.run("stat", ["--format=%F", socket], in: scratch) == ["socket"])
    }

    @Test func `a TCP client starts the broker, and systemd owns both loopback sockets`() async throws {
        let port = try FreePorts.take()[0]
        let variables = environment(in: scratch).flatMap { ["--setenv=\($0)=\($1)"] }
        let daemon = try await Program(
            "systemd-socket-activate",
            ["--listen=127.0.0.1:\(port)", "--listen=[::1]:\(port)", "--listen=\(scratch.file("p.sock"))"]
                + variables + [try Executable.built("patchbayd"), "--state-directory", scratch.file("state")],
            in: scratch
        )
        try await daemon.waitForLine("Listening on \(scratch.file("p.sock"))")

        #expect(try await Callers.run("once", "\(port)", in: scratch) == ["ok ok"])

        #expect(daemon.log.contains("the socket passed by systemd") && daemon.log.contains("tcp=\(port)"))
        daemon.terminate()
        #expect(try await daemon.exitStatus() == .exited(0))
    }

    @Test func `a TCP socket of systemd is ignored if the configuration disables TCP, and the log says so`()
        async throws
    {
        let port = try FreePorts.take()[0]
        let file = try scratch.write("[api]\ntcp = false\n", to: "patchbay.toml")
        let variables = environment(in: scratch).flatMap { ["--setenv=\($0)=\($1)"] }
        let socket = scratch.file("p.sock")
        let daemon = try await Program(
            "systemd-socket-activate",
            ["--listen=127.0.0.1:\(port)", "--listen=\(socket)"] + variables + [
                try Executable.built("patchbayd"), "--state-directory", scratch.file("state"), "--config", file,
            ],
            in: scratch
        )
        try await daemon.waitForLine("Listening on \(socket)")

        _ = try await Program.run(Executable.built("patchbay"), ["status", "--socket", socket], in: scratch)

        #expect(daemon.log.contains("systemctl disable --now patchbayd-tcp.socket"), "\(daemon.log)")
        #expect(daemon.log.contains("tcp=none"))
    }

    @Test(arguments: ["restart", "restart-tcp"])
    func `clients in a loop all get a response while the broker restarts again and again`(variant: String) async throws
    {
        let words = try await call(variant, "12")

        #expect(words.hasSuffix(" answered, 0 lost"), "\(words)")
        #expect(words.split(separator: " ").first.flatMap { Int($0) } ?? 0 > 100, "\(words)")
    }

    @Test(arguments: ["queue", "queue-tcp"])
    func `400 clients wait for the next broker, and none is refused`(variant: String) async throws {
        #expect(try await call(variant, "400") == "400 answered")
    }

    private func call(_ variant: String, _ count: String) async throws -> String {
        let callers = try await Program(
            "python3",
            [
                Callers.script, variant, try Executable.built("patchbayd"), scratch.file("state"),
                scratch.file("p.sock"), scratch.file("notify"), count,
            ],
            in: scratch,
            environment: environment(in: scratch)
        )
        let status = try await callers.exitStatus(within: .seconds(30))
        for await _ in callers.transcript.elements() {}
        guard status == .exited(0), let words = callers.output.last else { throw TestSupportError(callers.log) }
        return words
    }

    private func environment(in scratch: ScratchFolder) -> [String: String] {
        [
            "DBUS_SYSTEM_BUS_ADDRESS": "unix:path=\(scratch.file("no-bus"))",
            "USBMUXD_SOCKET_ADDRESS": scratch.file("no-usbmuxd"), "HOME": scratch.path,
        ]
    }
}
