import FoundationEssentials
import Glibc
import TestSupport
import Testing

/// `patchbay secret scan` in a pipe, with and without a broker.
@Suite(.scratchFolder) struct CliScanTests {
    private let scratch = ScratchFolder.current
    private static let token = String(repeating: "5ec2e7", count: 10) + "abcd"
    private static let line = "[AppReveal] Session URL: http://127.0.0.1:49213/?appreveal_session_token=\(token)"

    private func scan(_ scratch: ScratchFolder) async throws -> Program {
        try await Program(
            Executable.built("patchbay"),
            ["secret", "scan"],
            in: scratch,
            environment: ["PATCHBAY_SOCKET": scratch.file("no-broker")],
            input: .pipe
        )
    }

    @Test func `without a broker every line is passed through at once and the token is removed`() async throws {
        let scan = try await scan(scratch)

        for line in ["first", Self.line, "third"] {
            try scan.write(line + "\n")
            try await scan.waitForLine(String(line.prefix(70)))
        }
        let process = "/proc/\(scan.processID)"
        for file in ["cmdline", "environ", "comm"] {
            let text = try Data(contentsOf: URL(filePath: "\(process)/\(file)"))
            #expect(!String(decoding: text, as: UTF8.self).contains(Self.token))
        }
        scan.closeInput()

        #expect(try await scan.exitStatus(within: .seconds(20)) == .exited(75))
        #expect(scan.output == ["first", Self.line.replacing(Self.token, with: "[redacted]"), "third"])
        #expect(!scan.log.contains(Self.token))
        #expect(scan.log.contains("the secret of the app on port 49213 was not stored"))
    }

    @Test func `a token that is removed and not stored is reported and fails the command`() async throws {
        let scan = try await scan(scratch)
        try scan.write("GET /?appreveal_session_token=\(Self.token) 401\n")
        try await scan.waitForLine("GET /?appreveal_session_token=[redacted] 401")
        scan.closeInput()

        #expect(try await scan.exitStatus() == .exited(1))
        #expect(scan.log.contains("1 token was removed from the output and not stored"))
        #expect(!scan.log.contains(Self.token))
    }

    @Test func `the first Ctrl-C stops only the program that writes the input`() async throws {
        let scan = try await scan(scratch)
        try scan.write("before\n")
        try await scan.waitForLine("before")

        scan.send(SIGINT)
        try scan.write("its last words\n")
        scan.closeInput()

        #expect(try await scan.exitStatus() == .exited(0))
        #expect(scan.output == ["before", "its last words"])
    }

    @Test func `a second Ctrl-C ends the scan`() async throws {
        let scan = try await scan(scratch)
        try scan.write("before\n")
        try await scan.waitForLine("before")

        scan.send(SIGINT)
        // The kernel merges a signal with a pending one of the same number (signal(7)).
        try await eventually("the first Ctrl-C is handled") { try !Self.catches(SIGINT, scan) }
        try scan.write("between\n")
        try await scan.waitForLine("between")
        scan.send(SIGINT)

        #expect(try await scan.exitStatus() == .signalled(SIGINT))
    }

    /// True if the program has a handler for the signal (`SigCgt` in proc_pid_status(5)).
    private static func catches(_ signal: CInt, _ program: Program) throws -> Bool {
        let status = try String(contentsOf: URL(filePath: "/proc/\(program.processID)/status"), encoding: .utf8)
        let line = try #require(status.split(separator: "\n").first { $0.hasPrefix("SigCgt:") })
        let mask = try #require(UInt64(line.dropFirst("SigCgt:\t".count), radix: 16))
        return mask & 1 << (signal - 1) != 0
    }
}
