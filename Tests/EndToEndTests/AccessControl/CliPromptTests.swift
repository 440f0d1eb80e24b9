import FoundationEssentials
import TestSupport
import Testing

/// The prompt for a secret on a terminal, simulated with `pty(7)`, without a broker.
@Suite(.scratchFolder) struct CliPromptTests {
    private let scratch = ScratchFolder.current

    /// Runs a command with a terminal as its standard input, plays the scenario, and prints the terminal's state.
    private static let scenario = """
        import os, pty, signal, subprocess, sys, termios, time

        def echoes():
            return bool(termios.tcgetattr(slave)[3] & termios.ECHO)

        def wait(what, wanted):
            end = time.monotonic() + 10
            while what() != wanted:
                if time.monotonic() > end: sys.exit("never " + str(wanted))
                time.sleep(0.01)

        master, slave = pty.openpty()
        child = subprocess.Popen(sys.argv[2:], stdin=slave, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        wait(echoes, False)
        print("hidden", flush=True)
        if sys.argv[1] == "suspend":
            child.send_signal(signal.SIGTSTP)
            os.waitpid(child.pid, os.WUNTRACED)
            print("suspended, echo", echoes(), flush=True)
            child.send_signal(signal.SIGCONT)
            wait(echoes, False)
            print("hidden again", flush=True)
            child.send_signal(signal.SIGINT)
        else:
            child.send_signal(getattr(signal, sys.argv[1]))
        child.wait()
        print("ended by", -child.returncode, "echo", echoes(), flush=True)
        """

    @Test(.needs(.python), arguments: [("SIGINT", 2), ("SIGTERM", 15), ("SIGHUP", 1), ("SIGQUIT", 3)])
    func `a signal ends the prompt and restores terminal echo`(name: String, number: Int) async throws {
        let said = try await run(name, scratch)

        #expect(said == ["hidden", "ended by \(number) echo True"])
    }

    @Test(.needs(.python)) func `a suspended prompt restores echo for the shell and disables it on resume`()
        async throws
    {
        let said = try await run("suspend", scratch)

        #expect(said == ["hidden", "suspended, echo True", "hidden again", "ended by 2 echo True"])
    }

    /// A shell in a terminal runs a command that asks for a secret, and then reads a line itself.
    private static let shell = """
        import os, pty, select, sys, time

        pid, master = pty.fork()
        if pid == 0:
            os.execv("/bin/sh", ["sh", "-c", '"$0" "$@" 2>&1; read -r rest; echo "rest=[$rest]"', *sys.argv[2:]])
        shown = b""
        def wait(text):
            global shown
            end = time.monotonic() + 10
            while text not in shown:
                if time.monotonic() > end: sys.exit("never " + repr(text) + " in " + repr(shown))
                if select.select([master], [], [], 0.1)[0]: shown += os.read(master, 4096)
        wait(b"not shown")
        os.write(master, sys.argv[1].replace("\\n", "\\r").encode())
        wait(b"try:")
        os.write(master, b"next\\r")
        wait(b"rest=[next]")
        print("nothing left" if b"SECRET" not in shown else repr(shown))
        """

    @Test(.needs(.python), arguments: [["join", "-"], ["team", "join", "-"]], ["", "\n"])
    func `a wrapped secret leaves nothing for the shell`(command: [String], end: String) async throws {
        let paste = "PATCHBAY:1:127.0.0.1:7282::pbi_\nSECRET\nSECRET\(end)"
        let arguments = ["-c", Self.shell, paste, try Executable.built("patchbay")] + command

        #expect(try await Program.run("python3", arguments, in: scratch) == ["nothing left"])
    }

    /// Runs a command with a terminal as its standard input, ends the input, and prints what the command printed.
    private static let ended = """
        import os, pty, subprocess, sys

        master, slave = pty.openpty()
        child = subprocess.Popen(sys.argv[1:], stdin=slave, stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
        line = child.stdout.readline()
        os.write(master, b"\\x04")
        print((line + child.stdout.read()).decode(), end="")
        """

    @Test(.needs(.python)) func `mcp says at a terminal what it waits for, and is silent for a program`() async throws {
        let patchbay = try Executable.built("patchbay")
        let said = try await Program.run("python3", ["-c", Self.ended, patchbay, "mcp"], in: scratch)
        #expect(said.first?.contains("waits for the messages of an MCP client") == true, "\(said)")
        #expect(said.joined().contains("patchbay mcp install"), "\(said)")

        #expect(try await Program.run("sh", ["-c", "\(patchbay) mcp < /dev/null 2>&1"], in: scratch) == [])
    }

    private func run(_ name: String, _ scratch: ScratchFolder) async throws -> [String] {
        let arguments = ["-c", Self.scenario, name, try Executable.built("patchbay"), "join", "-"]
        return try await Program.run("python3", arguments, in: scratch)
    }
}
