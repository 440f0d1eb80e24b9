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
        (.notUnderstood(what: "x", detail: "y"), .error), (.refused(Problem(.notFound, "x")), .notFound),
        (.refused(Problem(.forbidden, "x")), .notPermitted), (.refused(Problem(.unavailable, "x")), .temporary),
        (.refused(Problem(.badRequest, "x")), .usage), (.refused(Problem(.conflict, "x")), .error),
    ])
    func `each failure of the broker ends with its own number`(error: ClientError, status: patchbay.ExitStatus) {
        #expect(patchbay.ExitStatus(for: error) == status)
    }

    @Test func `the numbers are those that are documented`() {
        #expect(patchbay.ExitStatus.allCases.map(\.rawValue) == [0, 1, 64, 66, 69, 75, 77, 78, 130, 141])
        for status in patchbay.ExitStatus.allCases {
            #expect(patchbay.ExitStatus.table.contains("\(status.rawValue)  \(status.meaning)"))
        }
    }

    @Test func `a broker that does not run is said with its socket and how to start it`() {
        let complaint = CLIError(
            describing: ClientError.brokerNotRunning(path: "/run/patchbay/patchbay.sock"),
            command: "patchbay list"
        )

        #expect(complaint.message == "no broker listens at /run/patchbay/patchbay.sock")
        #expect(complaint.remedy?.contains("patchbayd") == true)
    }

    @Test func `a wrong option is the parser's sentence and the help of that command`() throws {
        let arguments = ["tunnels", "rm"]
        let error = try #require(throws: (any Error).self) { try Patchbay.parseAsRoot(arguments) }

        let complaint = CLIError(
            describing: error,
            command: CommandSuggestion.command(in: arguments, below: Patchbay.self)
        )

        #expect(complaint.status == .usage)
        #expect(complaint.message == "give the ids of the tunnels to remove, or --all")
        #expect(complaint.remedy == "patchbay tunnels rm --help")
    }

    @Test(arguments: [
        (["pair", "--uses", "-1"], "--uses"), (["call", "shop", "tap", "--wait", "-5"], "--wait"),
        (["pair", "--for", "-10m"], "--for"), (["audit", "--last", "-1"], "--last"),
    ])
    func `a negative value is told as what it is`(arguments: [String], option: String) {
        let complaint = #expect(throws: CLIError.self) {
            try NegativeArgumentCheck.refuse(arguments, command: "patchbay pair")
        }
        #expect(complaint?.message.hasPrefix("\(option) takes no negative value such as \"-") == true)
        #expect(complaint?.status == .usage && complaint?.remedy == "patchbay pair --help")
    }

    @Test(arguments: [
        ["pair", "--uses", "1", "-e", "shop"], ["call", "shop", "tap", "x=-1"], ["call", "shop", "--", "-1"],
        ["iproxy", "-s", "-1"], ["join", "-"],
    ])
    func `what is no negative value passes`(arguments: [String]) throws {
        #expect(throws: Never.self) { try NegativeArgumentCheck.refuse(arguments, command: "patchbay") }
    }

    @Test func `with --json a refusal is the broker's problem, whole`() throws {
        let problem = Problem(.conflict, "port 22 is taken", next: "patchbay tunnels")

        let complaint = CLIError(describing: ClientError.refused(problem), command: "patchbay forward")
        let fault = CLIErrorReport(complaint).error

        #expect(fault.type == "urn:patchbay:problem:conflict")
        #expect(fault.title == problem.title)
        #expect(fault.status == 409)
        #expect(fault.detail == "port 22 is taken")
        #expect(fault.code == "conflict")
        #expect(fault.next == "patchbay tunnels")
        #expect(fault.exitCode == 1)
    }

    @Test func `with --json what we find ourselves has the same members`() throws {
        var complaint = CLIError.notFound("no endpoint fits \"x\"", try: "patchbay list")
        complaint.candidates = ["shop-a", "shop-b"]

        let text = String(decoding: try JSONCoding.encoder().encode(CLIErrorReport(complaint)), as: UTF8.self)

        #expect(
            text == #"{"error":{"candidates":["shop-a","shop-b"],"code":"not-found","detail":"no endpoint fits \"x\"","#
                + #""exitCode":66,"next":"patchbay list","title":"no such endpoint, tool, phone, tunnel, advertisement or grant","#
                + #""type":"urn:patchbay:problem:not-found"}}"#
        )
    }

    @Test(arguments: [["revoke", ""], ["revoke", "pbg_"], ["revoke", "x", "pbi_"], ["tunnels", "rm", ""]])
    func `an id that is empty ends nothing`(line: [String]) {
        #expect(throws: (any Error).self) { try Patchbay.parseAsRoot(line) }
    }

    @Test func `a token that was typed where an id belongs is not repeated`() {
        let token = "pbg_0a1b2c3d_" + String(repeating: "x", count: 43) + "_abcdef"
        let complaint = CLIError(
            describing: CLIError.notFound("no endpoint is called \(token)", try: "patchbay show \(token)"),
            command: "patchbay show"
        )

        #expect(complaint.message == "no endpoint is called pbg_0a1b2c3d_…")
        #expect(complaint.remedy == "patchbay show pbg_0a1b2c3d_…")
    }

    @Test(arguments: [("list --json", true), ("lst --json --x", true), ("list", false), ("iproxy -- --json", false)])
    func `JSON is what the command line asks for, even a wrong one`(line: String, isWanted: Bool) {
        #expect(CLIErrorReport.isWanted(by: line.split(separator: " ").map(String.init)) == isWanted)
    }

    @Test(arguments: [
        ("lss", "patchbay list"), ("lst", "patchbay list"), ("stauts", "patchbay status"),
        ("forwrad", "patchbay forward"),
        ("tunnel", "patchbay tunnels"), ("iproxi", "patchbay iproxy"), ("dev", "patchbay devices"),
        ("qqqqqq", "patchbay --help"), ("tunnels rmm", "patchbay tunnels rm"), ("help lss", "patchbay list"),
    ])
    func `a mistyped command gets the one that was meant`(line: String, remedy: String) {
        let complaint = #expect(throws: CLIError.self) {
            try CommandSuggestion.check(line.split(separator: " ").map(String.init), against: Patchbay.self)
        }

        #expect(complaint?.status == .usage)
        #expect(complaint?.remedy == remedy)
    }

    @Test(arguments: [
        "list", "ls", "--version", "tunnels rm t1", "tunnels --json", "iproxy 1:2", "show x", "help list", "",
    ])
    func `a right command is left alone`(line: String) throws {
        try CommandSuggestion.check(line.split(separator: " ").map(String.init), against: Patchbay.self)
    }

    @Test func `where the broker has no advice none is made up`() {
        let complaint = CLIError(
            describing: ClientError.refused(Problem(.conflict, "port 22 is taken")),
            command: "patchbay forward"
        )

        #expect(complaint.remedy == nil)
    }

    @Test func `iproxy offers nothing that iproxy refuses`() {
        let problem = Problem(.conflict, "tcp:8123 is in use", next: "choose another port or tcp:0")

        let complaint = IproxyCommand.refusalToListen(ClientError.refused(problem))

        #expect(complaint?.exitCode == 247)
        #expect(complaint?.remedy?.contains("tcp:0") == false)
    }

    @Test func `a name that cannot be is not in the example`() throws {
        let add = try #require(try Patchbay.parseAsRoot(["add", "", "127.0.0.1:1"]) as? AddCommand)

        let complaint = #expect(throws: CLIError.self) { try add.endpoint() }

        #expect(complaint?.remedy == "patchbay add \"Simulator\" 127.0.0.1:9876")
    }
}
