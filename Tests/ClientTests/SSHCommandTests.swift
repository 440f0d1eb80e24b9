import Testing

@testable import Client

@Suite struct SSHCommandTests {
    private let command: SSHCommand

    init() throws { command = SSHCommand(destination: try SSHDestination("ssh://anna@box:2222")) }

    @Test func `the host follows the end of the options in every command line`() {
        let lines = [
            command.configuration, command.check(control: "/c"), command.login(control: "/c", isShared: false),
            command.login(control: "/c", isShared: true),
            command.forward(program: "/ssh", from: "/l", to: "/r", control: "/c"),
        ]
        for line in lines {
            let end = line.firstIndex(of: "--")
            #expect(end.map { Array(line[..<$0].suffix(4)) } == ["-l", "anna", "-p", "2222"])
            #expect(end.map { line[$0 + 1] } == "box")
        }
    }

    @Test func `a login shares its connection only on a control socket of its own`() {
        #expect(command.login(control: "/c", isShared: false).contains("ControlMaster=yes"))
        #expect(command.login(control: "/c", isShared: true).contains("ControlMaster=no"))
    }

    @Test func `the script for the other machine has no single quote inside, so every login shell passes it on`() throws
    {
        let script = try #require(command.login(control: "/c", isShared: false).last)

        #expect(script.hasPrefix("exec sh -c '") && script.hasSuffix("'"))
        #expect(script.filter { $0 == "'" }.count == 2)
    }

    @Test func `a path in the address replaces the search for the socket`() throws {
        let named = SSHCommand(destination: try SSHDestination("ssh://box/srv/x.sock"))

        let script = try #require(named.login(control: "/c", isShared: false).last)
        #expect(script.contains("for s in /srv/x.sock; do") && !script.contains("/run/patchbay"))
    }

    @Test func `a machine without ssh is an error of its own`() {
        #expect(throws: ClientError.sshMissing) { try SSHCommand.program(path: "/nonexistent:relative") }
    }
}
