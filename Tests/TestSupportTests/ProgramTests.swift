import FoundationEssentials
import Glibc
import TestSupport
import Testing

@Suite(.scratchFolder) struct ProgramTests {
    private let scratch = ScratchFolder.current

    @Test func `a program's lines arrive in order, and its exit status after them`() async throws {
        let program = try await Program("sh", ["-c", "echo one; echo two; printf three; exit 3"], in: scratch)

        #expect(try await program.exitStatus() == .exited(3))
        for await _ in program.transcript.elements() {}
        #expect(program.output == ["one", "two", "three"])
    }

    @Test func `waiting for a missing line fails with the program's output`() async throws {
        let program = try await Program("sh", ["-c", "echo good evening >&2; sleep 60"], in: scratch)
        try await program.waitForLine("evening")

        let error = await #expect(throws: TestSupportError.self) {
            try await program.waitForLine("good morning", within: .milliseconds(50))
        }
        #expect(error?.description.contains("sh: good evening") == true)
    }

    @Test func `the program reads what the test writes`() async throws {
        let program = try await Program("cat", in: scratch, input: .pipe)
        try program.write("a line\n")
        try await program.waitForLine("a line")

        program.closeInput()

        #expect(try await program.exitStatus() == .exited(0))
    }

    @Test func `removing the scratch folder ends its programs and their children`() async throws {
        let (folder, child) = try await withScratchFolder { scratch in
            let program = try await Program("sh", ["-c", "sleep 600 & echo $!; wait"], in: scratch)
            let line = try await program.waitForLine("")
            return (scratch.path, try #require(pid_t(line)))
        }

        #expect(access(folder, F_OK) != 0)
        try await eventually("the grandchild is gone") { kill(child, 0) != 0 || Self.isDead(child) }
    }

    @Test func `a stopped program does nothing until it is continued`() async throws {
        let program = try await Program("cat", in: scratch, input: .pipe)
        program.freeze()
        try program.write("hello\n")
        await #expect(throws: TestSupportError.self) {
            try await program.waitForLine("hello", within: .milliseconds(100))
        }

        program.thaw()

        try await program.waitForLine("hello")
    }

    @Test func `a program starts with no signal ignored or blocked, whatever the test process ignores`() async throws {
        // This is the signal state of a background job of a script.
        let before = [SIGINT, SIGQUIT, SIGHUP, SIGPIPE].map { ($0, signal($0, SIG_IGN)) }
        defer { for (number, handler) in before { signal(number, handler) } }

        let lines = try await Program.run("grep", ["-E", "^Sig(Ign|Blk):", "/proc/self/status"], in: scratch)

        let masks = try lines.map { try #require(UInt64($0.suffix(16), radix: 16)) }
        // glibc uses signals 32 and 33 and ignores them before exec(2).
        #expect(masks.count == 2 && masks.allSatisfy { $0 & 0x7fff_ffff == 0 }, "\(lines)")
    }

    @Test func `a missing program is reported as missing`() async throws {
        let error = await #expect(throws: TestSupportError.self) { try await Program("no-such-program", in: scratch) }

        #expect(error?.description.hasPrefix("no-such-program is not installed") == true)
    }

    /// True if the process is a zombie that waits to be reaped.
    private static func isDead(_ process: pid_t) -> Bool {
        guard let text = try? String(contentsOf: URL(filePath: "/proc/\(process)/stat"), encoding: .utf8) else {
            return true
        }
        return text.split(separator: ")").last?.hasPrefix(" Z") == true
    }
}
