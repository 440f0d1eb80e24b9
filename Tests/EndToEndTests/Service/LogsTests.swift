import Glibc
import TestSupport
import Testing

/// `patchbay logs` with a stand-in for journalctl, which prints its arguments.
@Suite(.needs(.root, .namespaces), .scratchFolder) struct LogsTests {
    private let scratch = ScratchFolder.current

    /// Starts `patchbay logs` in a mount namespace, where /run has only a journal.
    private static func logs(
        _ options: [String],
        socket: String? = nil,
        hasJournal: Bool = true,
        in scratch: ScratchFolder
    ) async throws -> Program {
        let journal = hasJournal ? "mkdir -p /run/systemd/journal; : >/run/systemd/journal/socket" : "true"
        try scratch.makeFolder("bin")
        // A link, because a script that was just written can be busy: another test may start a process meanwhile.
        symlink("/bin/echo", scratch.file("bin/journalctl"))
        return try await Program(
            "unshare",
            [
                "--mount", "--propagation", "private", "sh", "-ec", "mount -t tmpfs none /run; \(journal); exec \"$@\"",
                "sh", try Executable.built("patchbay"), "logs",
            ] + options,
            in: scratch,
            environment: [
                "PATH": "\(scratch.file("bin")):/usr/sbin:/usr/bin:/sbin:/bin",
                "PATCHBAY_SOCKET": socket ?? "/run/patchbay/patchbay.sock", "HOME": scratch.path,
            ]
        )
    }

    @Test(
        arguments: [
            ([], "--unit patchbayd.service --lines 100"),
            (["-f", "-n", "5"], "--unit patchbayd.service --lines 5 --follow"),
            (["-p", "error"], "--unit patchbayd.service --lines 100 --priority err"),
            (["--since", "10m"], "--unit patchbayd.service --lines all --since -600s"),
        ]
    )
    func `the options become those of journalctl for the system's service`(
        options: [String],
        expected: String
    ) async throws {
        let program = try await Self.logs(options, in: scratch)

        #expect(try await program.lines().map(\.text) == [expected])
    }

    @Test func `a broker on another socket has the log of the user's own service`() async throws {
        let program = try await Self.logs([], socket: scratch.file("own.sock"), in: scratch)

        #expect(try await program.lines().map(\.text) == ["--user-unit patchbayd.service --lines 100"])
    }

    @Test(
        arguments: [
            ([], 66, "this machine has no journal"),
            (["--broker", "lab"], 64, "the log of a broker on another machine is on that machine"),
            (["-p", "loud"], 64, "--priority must be debug, info, notice, warning, err or crit"),
            (["-n", "0"], 64, "--lines must be at least 1"),
        ] as [([String], CInt, String)]
    )
    func `an error says why there is no log`(options: [String], status: CInt, message: String) async throws {
        let program = try await Self.logs(options, hasJournal: false, in: scratch)

        #expect(try await program.exitStatus() == .exited(status))
        #expect(program.log.contains(message), "\(program.log)")
    }
}
