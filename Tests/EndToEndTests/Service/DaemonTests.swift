import FoundationEssentials
import Glibc
import TestSupport
import Testing

@Suite(.needs(.python), .scratchFolder) struct DaemonTests {
    private let scratch = ScratchFolder.current

    @Test func `SIGTERM ends the broker within 1 s, even with open event streams`() async throws {
        let broker = try await RunningBroker(in: scratch)
        let watch = try await broker.start("watch", "--json")
        try await watch.waitForLine("snapshot")

        let start = ContinuousClock.now
        broker.daemon.terminate()
        let status = try await broker.daemon.exitStatus()

        #expect(status == .exited(0), "\(broker.daemon.log)")
        #expect(ContinuousClock.now - start < .seconds(1))
    }

    @Test func `relative paths are resolved against the working directory`() async throws {
        let folder = try scratch.makeFolder("here")
        let words = "cd \"$0\" && exec \"$1\" --socket api.sock --state-directory kept/state"
        for _ in 0..<2 {
            let daemon = try await Program(
                "sh",
                ["-c", words, folder, try Executable.built("patchbayd")],
                in: scratch,
                environment: [
                    "HOME": scratch.path, "DBUS_SYSTEM_BUS_ADDRESS": "unix:path=\(scratch.path)/no-bus",
                    "USBMUXD_SOCKET_ADDRESS": "\(scratch.path)/no-usbmuxd",
                ]
            )
            let line = try await daemon.waitForLine("the API is open")
            #expect(line.contains("socket=\(folder)/api.sock"), "\(line)")
            let kept = try FileManager.default.contentsOfDirectory(atPath: "\(folder)/kept/state")
            #expect(kept.contains("pairing.db") || kept.count > 2, "\(kept)")
            daemon.terminate()
            #expect(try await daemon.exitStatus() == .exited(0))
        }
    }

    @Test func `a long poll is answered when the broker stops`() async throws {
        let broker = try await RunningBroker(in: scratch)
        let list = try await broker.ask("list", "--json").joined()
        let revision = list.split(separator: "\"revision\":").last?.prefix(while: \.isNumber) ?? ""
        let url = "http://localhost/v1/endpoints?since=\(revision)&waitSeconds=300"
        let poll = try await Program("curl", ["-sS", "--unix-socket", broker.socket, url], in: scratch)
        try await eventually("the poll is open") { try await broker.connections(in: scratch) == 1 }

        broker.daemon.terminate()

        #expect(try await broker.daemon.exitStatus(within: .seconds(2)) == .exited(0))
        #expect(try await poll.exitStatus() == .exited(0))
        #expect(poll.log.contains("revision"))
    }

    @Test func `the socket file of a killed broker is replaced`() async throws {
        let broker = try await RunningBroker(in: scratch)
        broker.daemon.kill()
        _ = try await broker.daemon.exitStatus()

        try await broker.restart()

        #expect(try await broker.ask("status").joined().contains("patchbayd"))
    }

    @Test func `the broker starts without Avahi and usbmuxd and says what is missing`() async throws {
        let broker = try await RunningBroker(in: scratch)

        let status = try await broker.ask("status").joined(separator: "\n")

        #expect(status.contains("bonjour    missing"))
        #expect(status.contains("usbmuxd    missing"))
        #expect(status.contains("try:"))
    }

    @Test func `a second broker on the same socket exits with its path, and the first keeps running`() async throws {
        let broker = try await RunningBroker(in: scratch)

        let second = try await Program(
            Executable.built("patchbayd"),
            ["--socket", broker.socket, "--state-directory", "\(scratch.path)/two"],
            in: scratch
        )

        #expect(try await second.exitStatus() == .exited(1))
        #expect(second.log.contains("\(broker.socket) is in use by process \(broker.daemon.processID);"))
        #expect(try await broker.ask("status").joined().contains("patchbayd"))
    }

    @Test func `a second broker on the same state folder exits with its path, and the first keeps running`()
        async throws
    {
        let broker = try await RunningBroker(in: scratch)

        let second = try await Program(
            Executable.built("patchbayd"),
            ["--socket", scratch.file("two.sock"), "--state-directory", scratch.file("state")],
            in: scratch
        )

        #expect(try await second.exitStatus() == .exited(1))
        #expect(second.log.contains("/state is in use by patchbayd, process \(broker.daemon.processID);"))
        broker.daemon.kill()
        _ = try await broker.daemon.exitStatus()
        try await broker.restart()
    }

    @Test(
        .needs(.root, .namespaces),
        arguments: [
            (["--socket", "/tmp/" + String(repeating: "x", count: 103)], 78, "absolute path of at most 107 bytes"),
            (["--state-directory", "x", "--nonsense"], 64, "try: patchbayd --help"),
            (["--config", "/tmp"], 78, "/tmp cannot be read: it is a folder"),
            (["--config", "/none.toml"], 78, "check the path"),
            (
                ["--state-directory", "/dev/null"], 78,
                "the state folder /dev/null cannot be used: /dev/null is no folder;"
            ),
            (["--state-directory", "/proc/self"], 78, "the state folder /proc/self cannot be used"),
            (
                ["--state-directory", "/mnt/a/b"], 78,
                "/mnt/a/b cannot be used: /mnt/a cannot be made: Read-only file system;"
            ),
            (
                ["--state-directory", "/mnt"], 78,
                "the state folder /mnt cannot be used: Read-only file system; name another"
            ),
        ]
    )
    func `a start that fails names the cause and the remedy`(words: [String], code: CInt, wanted: String) async throws {
        let mount = ["--mount", "sh", "-ec", "mount -t tmpfs -o ro none /mnt; exec \"$@\"", "sh"]
        let usual = ["--socket", scratch.file("p.sock"), "--state-directory", scratch.file("state")]
        let daemon = try await Program(
            "unshare",
            mount + [try Executable.built("patchbayd")] + usual + words,
            in: scratch
        )

        #expect(try await daemon.exitStatus() == .exited(code))
        for await _ in daemon.transcript.elements() {}
        #expect(daemon.log.contains(wanted), "\(daemon.log)")
    }

    @Test func `removing an endpoint of the configuration is refused and points to the file`() async throws {
        let file = "\(try scratch.makeFolder(".config/patchbay"))/patchbay.toml"
        try """
        [[endpoint]]
        name = "staging"
        kind = "tcp"
        address = "127.0.0.1"
        port = 1
        """.write(toFile: file, atomically: true, encoding: .utf8)
        let broker = try await RunningBroker(in: scratch)

        let forget = try await broker.start("rm", "staging")

        #expect(try await forget.exitStatus() == .exited(1))
        #expect(forget.log.contains("\(file); remove it there"), "\(forget.log)")
    }

    @Test func `an invalid configuration exits with 78 and names the file and the key`() async throws {
        let file = "\(scratch.path)/bad.toml"
        try "[tunnels]\nmax_conections = 3\n".write(toFile: file, atomically: true, encoding: .utf8)

        let daemon = try await Program(Executable.built("patchbayd"), ["--config", file], in: scratch)

        #expect(try await daemon.exitStatus() == .exited(78))
        #expect(daemon.log.contains("bad.toml"))
        #expect(daemon.log.contains("tunnels.max_conections"))
    }
}
