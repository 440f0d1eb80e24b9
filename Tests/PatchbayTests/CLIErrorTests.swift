import ArgumentParser
import Client
import FoundationEssentials
import Model
import Testing

@testable import patchbay

@Suite struct CLIErrorTests {
    @Test(arguments: [
        (ClientError.brokerNotRunning(path: "/x"), patchbay.ExitStatus.notReachable),
        (.notPermitted(path: "/x"), .notPermitted),
        (.unusablePath(path: "x", reason: "y"), .configuration), (.busy(path: "/x"), .temporary),
        (.timedOut(what: "x", seconds: 1), .temporary), (.connectionLost(what: "x"), .temporary),
        (.invalidResponse(what: "x", detail: "y"), .error), (.refused(Problem(.notFound, "x")), .notFound),
        (.refused(Problem(.forbidden, "x")), .notPermitted), (.refused(Problem(.unavailable, "x")), .temporary),
        (.refused(Problem(.badRequest, "x")), .usage), (.refused(Problem(.conflict, "x")), .error),
    ])
    func `each broker error maps to its exit code`(error: ClientError, status: patchbay.ExitStatus) {
        #expect(patchbay.ExitStatus(for: error) == status)
    }

    @Test func `the exit codes are the documented ones`() {
        #expect(patchbay.ExitStatus.allCases.map(\.rawValue) == [0, 1, 64, 66, 69, 75, 77, 78, 130, 141])
        for status in patchbay.ExitStatus.allCases {
            #expect(patchbay.ExitStatus.table.contains("\(status.rawValue)  \(status.meaning)"))
        }
    }

    @Test func `the error for a broker that is not running names the socket and how to start the broker`() {
        let error = CLIError(
            describing: ClientError.brokerNotRunning(path: "/run/patchbay/patchbay.sock"),
            command: "patchbay list"
        )

        #expect(error.message == "no broker listens at /run/patchbay/patchbay.sock")
        #expect(error.hint?.contains("patchbayd") == true)
    }

    @Test func `a refused connection to the control socket names the group and the command that adds a user`() {
        let hint = CLIError(describing: ClientError.notPermitted(path: "/x"), command: "patchbay list").hint

        #expect(hint?.hasPrefix("sudo usermod -aG patchbay \"$USER\", and log in again: ") == true)
    }

    @Test func `a parser error becomes a usage error with a hint to the command's help`() throws {
        let arguments = ["tunnels", "rm"]
        let error = try #require(throws: (any Error).self) { try Patchbay.parseAsRoot(arguments) }

        let cliError = CLIError(
            describing: error,
            command: CommandSuggestion.command(in: arguments, below: Patchbay.self)
        )

        #expect(cliError.status == .usage)
        #expect(cliError.message == "specify the IDs of the tunnels to remove, or --all")
        #expect(cliError.hint == "patchbay tunnels rm --help")
    }

    @Test(arguments: [
        (["pair", "--uses", "-1"], "--uses"), (["call", "shop", "tap", "--wait", "-5"], "--wait"),
        (["pair", "--expires-in", "-10m"], "--expires-in"), (["audit", "--last", "-1"], "--last"),
    ])
    func `a negative option value is rejected as a negative value`(arguments: [String], option: String) {
        let error = #expect(throws: CLIError.self) {
            try NegativeArgumentCheck.refuse(arguments, command: "patchbay pair")
        }
        #expect(error?.message.hasPrefix("\(option) does not accept the negative value \"-") == true)
        #expect(error?.status == .usage && error?.hint == "patchbay pair --help")
    }

    @Test(arguments: [
        ["pair", "--uses", "1", "-e", "shop"], ["call", "shop", "tap", "x=-1"], ["call", "shop", "--", "-1"],
        ["iproxy", "-s", "-1"], ["join", "-"],
    ])
    func `values that are not negative option values are accepted`(arguments: [String]) throws {
        #expect(throws: Never.self) { try NegativeArgumentCheck.refuse(arguments, command: "patchbay") }
    }

    @Test func `with --json a rejection is printed as the broker's complete problem`() throws {
        let problem = Problem(.conflict, "port 22 is taken", hint: "patchbay tunnels")

        let error = CLIError(describing: ClientError.refused(problem), command: "patchbay forward")
        let fault = CLIErrorReport(error).error

        #expect(fault.type == "urn:patchbay:problem:conflict")
        #expect(fault.title == problem.title)
        #expect(fault.status == 409)
        #expect(fault.detail == "port 22 is taken")
        #expect(fault.code == "conflict")
        #expect(fault.hint == "patchbay tunnels")
        #expect(fault.exitCode == 1)
    }

    @Test func `with --json an error of the CLI has the same members as a problem`() throws {
        var error = CLIError.notFound("no endpoint fits \"x\"", try: "patchbay list")
        error.candidates = ["shop-a", "shop-b"]

        let text = String(decoding: try JSONCoding.encoder().encode(CLIErrorReport(error)), as: UTF8.self)

        #expect(
            text == #"{"error":{"candidates":["shop-a","shop-b"],"code":"not-found","detail":"no endpoint fits \"x\"","#
                + #""exitCode":66,"hint":"patchbay list","#
                + #""title":"no such endpoint, tool, state, phone, tunnel, advertisement or grant","#
                + #""type":"urn:patchbay:problem:not-found"}}"#
        )
    }

    @Test(arguments: [["revoke", ""], ["revoke", "pbg_"], ["revoke", "x", "pbi_"], ["tunnels", "rm", ""]])
    func `an empty ID is a usage error`(line: [String]) {
        #expect(throws: (any Error).self) { try Patchbay.parseAsRoot(line) }
    }

    @Test func `a token in place of an ID is redacted in the error`() {
        let token = "pbg_0a1b2c3d_" + String(repeating: "x", count: 43) + "_abcdef"
        let error = CLIError(
            describing: CLIError.notFound("no endpoint is called \(token)", try: "patchbay show \(token)"),
            command: "patchbay show"
        )

        #expect(error.message == "no endpoint is called pbg_0a1b2c3d_…")
        #expect(error.hint == "patchbay show pbg_0a1b2c3d_…")
    }

    @Test(arguments: [("list --json", true), ("lst --json --x", true), ("list", false), ("iproxy -- --json", false)])
    func `--json is detected even in an invalid command line`(line: String, isWanted: Bool) {
        #expect(CLIErrorReport.isWanted(by: line.split(separator: " ").map(String.init)) == isWanted)
    }

    @Test(arguments: [
        ("lss", "patchbay list"), ("lst", "patchbay list"), ("stauts", "patchbay status"),
        ("forwrad", "patchbay forward"),
        ("tunnel", "patchbay tunnels"), ("iproxi", "patchbay iproxy"), ("dev", "patchbay devices"),
        ("qqqqqq", "patchbay --help"), ("top", "patchbay --help"), ("tunnels rmm", "patchbay tunnels rm"),
        ("help lss", "patchbay list"),
    ])
    func `a mistyped command gets a suggestion`(line: String, hint: String) {
        let error = #expect(throws: CLIError.self) {
            try CommandSuggestion.check(line.split(separator: " ").map(String.init), against: Patchbay.self)
        }

        #expect(error?.status == .usage)
        #expect(error?.hint == hint)
    }

    @Test(arguments: [
        "list", "ls", "--version", "tunnels rm t1", "tunnels --json", "iproxy 1:2", "show x", "help list", "",
    ])
    func `a valid command passes the check`(line: String) throws {
        try CommandSuggestion.check(line.split(separator: " ").map(String.init), against: Patchbay.self)
    }

    @Test(arguments: [
        ("advertise web 9876 --type foo", "unknown option '--type'", "patchbay advertise --help"),
        ("list --jsn x", "unknown option '--jsn'", "patchbay list --help"),
        ("list online", "unexpected argument 'online'", "patchbay list --state online"),
        (
            "mcp install claude-code --project",
            "there is no client \"claude-code\"; the clients are claude, cursor, vscode, codex",
            "patchbay mcp install claude --project"
        ),
        (
            "mcp uninstall code", "there is no client \"code\"; the clients are claude, cursor, vscode, codex",
            "patchbay mcp uninstall vscode"
        ),
        ("tunnels --jsno", "unknown option '--jsno'", "patchbay tunnels --json"),
        ("show x --colour=never", "unknown option '--colour'", "patchbay show x '--color=never'"),
    ])
    func `an unknown option is blamed, and not the word after it`(line: String, message: String, hint: String) {
        let error = UnknownOption.error(in: line.split(separator: " ").map(String.init), below: Patchbay.self)
        #expect(error?.message == message && error?.hint == hint, "\(String(describing: error))")
    }

    @Test(arguments: [
        "list --json x", "iproxy --x", "lease x -- top --foo", "call x tap --wait=5s", "show", "audit --last 3",
    ])
    func `options that exist are not blamed`(line: String) {
        #expect(UnknownOption.error(in: line.split(separator: " ").map(String.init), below: Patchbay.self) == nil)
    }

    @Test func `an error without a hint of the broker has no hint`() {
        let error = CLIError(
            describing: ClientError.refused(Problem(.conflict, "port 22 is taken")),
            command: "patchbay forward"
        )

        #expect(error.hint == nil)
    }

    @Test func `the hint of iproxy omits tcp:0, which iproxy does not accept`() {
        let problem = Problem(.conflict, "tcp:8123 is in use", hint: "choose another port or tcp:0")

        let error = IproxyCommand.refusalToListen(ClientError.refused(problem))

        #expect(error?.exitCode == 247)
        #expect(error?.hint?.contains("tcp:0") == false)
    }

    @Test func `an invalid name does not appear in the example`() throws {
        let add = try #require(try Patchbay.parseAsRoot(["add", "", "127.0.0.1:1"]) as? AddCommand)

        let error = #expect(throws: CLIError.self) { try add.endpoint() }

        #expect(error?.hint == "patchbay add \"Simulator\" 127.0.0.1:9876")
    }
}
