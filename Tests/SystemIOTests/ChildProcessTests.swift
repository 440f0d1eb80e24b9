import Glibc
import SystemIO
import TestSupport
import Testing

@Suite struct ChildProcessTests {
    private func shell(_ script: String) throws -> ChildProcess {
        try ChildProcess("/bin/sh", ["-c", script], announcing: "ready ")
    }

    @Test func `a process announces itself after other output and keeps running`() async throws {
        let process = try shell("echo welcome; echo ready to go; exec cat")

        #expect(try await process.announcement() == "to go")
        #expect(process.isRunning)
    }

    @Test func `a process that ends without an announcement reports its status and its errors`() async throws {
        let process = try shell("echo no way >&2; exit 7")

        let exit = await #expect(throws: ChildExit.self) { try await process.announcement() }
        #expect(exit?.status == 7 && exit?.errorOutput == "no way\n")
        #expect(try await process.exit() == exit)
        #expect(!process.isRunning)
    }

    @Test func `a terminated process has no exit status`() async throws {
        let process = try shell("echo ready; exec sleep 600")
        process.terminate()

        #expect(try await process.exit().status == nil)
    }

    @Test func `a process ends with its owner`() async throws {
        var process: ChildProcess? = try shell("echo ready $$; exec sleep 600")
        let id = try #require(pid_t(try await process?.announcement() ?? ""))
        guard let handle = Descriptor(handleOf: "/proc/\(id)") else { throw TestSupportError("no process \(id)") }
        process = nil

        // The folder of a process has no entries after the process was reaped.
        let path = "/proc/self/fd/\(handle.number)/stat"
        try await eventually("the process ends") { access(path, F_OK) != 0 }
    }

    @Test func `only the end of a long error output is kept`() async throws {
        let process = try shell("seq 1 20000 >&2; echo last >&2; exit 1")

        let output = try await process.exit().errorOutput
        #expect(output.utf8.count == ChildProcess.errorLimit && output.hasSuffix("20000\nlast\n"))
    }

    @Test func `a grandchild that keeps the output open does not hide the end`() async throws {
        let process = try shell("sleep 600 & echo $! >&2; exit 3")

        let exit = try await process.exit()
        #expect(exit.status == 3)
        kill(try #require(pid_t(exit.errorOutput.filter(\.isNumber))), SIGKILL)
    }

    @Test func `a program that does not exist ends with status 127`() async throws {
        let process = try ChildProcess("/nonexistent", [], announcing: "x")

        #expect(try await process.exit().status == 127)
    }
}
