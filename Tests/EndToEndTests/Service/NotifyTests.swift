import FoundationEssentials
import SystemIO
import TestSupport
import Testing

/// Notifications to systemd (sd_notify(3)).
@Suite(.needs(.python, .systemd), .scratchFolder) struct NotifyTests {
    private let scratch = ScratchFolder.current

    @Test
    func `READY=1 is sent when the API responds, WATCHDOG=1 at half its limit, and STOPPING=1 before the exit`()
        async throws
    {
        let socket = scratch.file("p.sock")
        let systemd = try await Callers.listen(at: scratch.file("notify"), socket: socket, in: scratch)
        let daemon = try await Program(
            Executable.built("patchbayd"),
            ["--socket", socket, "--state-directory", scratch.file("state")],
            in: scratch,
            environment: ["NOTIFY_SOCKET": scratch.file("notify"), "WATCHDOG_USEC": "400000"]
        )

        try await systemd.waitForLine("READY=1 STATUS=serving on \(socket); the API says ok")
        let fed = try await eventually("the watchdog is fed six times") {
            let times = Self.times(of: "WATCHDOG=1", in: systemd)
            return times.count >= 6 ? times : nil
        }
        let gaps = zip(fed.dropFirst(), fed).map(-)
        #expect(gaps.allSatisfy { $0 < 0.4 }, "\(gaps)")
        #expect((0.18...0.3).contains(gaps.reduce(0, +) / Double(gaps.count)), "\(gaps)")

        // A silent client delays the shutdown by 0.5 s.
        let silent = try await SocketAddress.unix(path: socket).connect(within: .seconds(5))
        daemon.terminate()
        try await systemd.waitForLine("STOPPING=1")
        #expect(FileManager.default.fileExists(atPath: "/proc/\(daemon.processID)"))
        #expect(try await daemon.exitStatus(within: .seconds(2)) == .exited(0))
        withExtendedLifetime(silent) {}
    }

    @Test(
        arguments: [(["--config", "/none.toml"], 78), (["--state-directory", "/dev/null"], 78)] as [([String], CInt)]
    )
    func `a broker that cannot start never sends READY=1`(words: [String], code: CInt) async throws {
        let notify = ["NOTIFY_SOCKET": scratch.file("notify")]
        let systemd = try await Callers.listen(at: scratch.file("notify"), socket: scratch.file("p.sock"), in: scratch)

        let daemon = try await Program(
            Executable.built("patchbayd"),
            ["--socket", scratch.file("p.sock")] + words,
            in: scratch,
            environment: notify
        )
        #expect(try await daemon.exitStatus() == .exited(code))
        try await Program.run("systemd-notify", ["--status=over"], in: scratch, environment: notify)

        try await systemd.waitForLine("STATUS=over")
        #expect(!systemd.log.contains("READY"), "\(systemd.log)")
    }

    private static func times(of words: String, in systemd: Program) -> [Double] {
        systemd.output.filter { $0.hasSuffix(" \(words)") }
            .compactMap { $0.split(separator: " ").first.flatMap { Double($0) } }
    }
}
