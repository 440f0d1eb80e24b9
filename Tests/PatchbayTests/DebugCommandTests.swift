import ArgumentParser
import Foundation
import Model
import Samples
import Testing

@testable import patchbay

@Suite struct DebugCommandTests {
    @Test func `a diff marks added, removed and changed values`() {
        let diff: JSONObject = [
            "changes": [
                ["pointer": "/a", "before": "1", "after": "2"], ["pointer": "/b", "before": "3"],
                ["pointer": "/c", "after": "4"],
            ], "omittedChanges": 5,
        ]

        #expect(DebugDiffCommand.lines(of: diff) == ["~ /a: 1 -> 2", "- /b: 3", "+ /c: 4", "5 more changes"])
        #expect(DebugDiffCommand.lines(of: ["changes": []]) == ["The states are equal."])
    }

    @Test func `the table of states has their number, size, picture and action`() {
        let table = DebugListCommand.table(of: [
            ["number": 7, "time": "2026-11-22T10:00:00Z", "bytes": 1_500, "picture": "held", "action": "tap\u{1B}[2J"]
        ])

        let cells = table.rows[0].map(\.text)
        #expect([cells[0], cells[2], cells[3]] == ["7", "1.5 kB", "held"])
        #expect(!cells[4].contains("\u{1B}"))
        #expect(cells[4].hasPrefix("tap"))
    }

    @Test func `an endpoint of another kind is named with the command for its tools`() {
        let endpoint = Endpoint.sample(kind: .appDebug)

        let error = DebugAppOptions.otherKind(endpoint)

        #expect(error.message == "shop is of kind app-debug, and not an app of the state debugger")
        #expect(error.hint == "patchbay tools shop")
    }

    @Test func `a mistyped command is no endpoint`() {
        let error = #expect(throws: CLIError.self) {
            try CommandSuggestion.check(["debug", "sho", "shop"], against: Patchbay.self)
        }

        #expect(error?.message == "there is no command \"sho\" in patchbay debug")
        #expect(error?.hint == "patchbay debug show")
        #expect(throws: CLIError.self) {
            try CommandSuggestion.check(["help", "debug", "a", "b"], against: Patchbay.self)
        }
    }

    @Test func `a state with --json is one line of JSON, or an error`() throws {
        #expect(try DebugShowCommand.document(in: ["{\n  \"a\": 1.0\n}"], limit: 10) == #"{"a":1.0}"#)
        let cut = #expect(throws: CLIError.self) {
            _ = try DebugShowCommand.document(in: ["{\"a", "The first 3 of 9 bytes."], limit: 3)
        }
        #expect(cut?.message == "the state has more than 3 bytes, so it is not one JSON document")
        #expect(throws: CLIError.self) { _ = try DebugShowCommand.document(in: ["{,}"], limit: 10) }
    }

    @Test(arguments: [("not-found", CInt(66)), ("unknown-tool", 66), ("busy", 1)])
    func `a state that is not held has the exit status of a missing object`(failure: String, status: CInt) {
        let result: JSONObject = ["isError": true, "content": [], "_meta": ["patchbay/failure": .string(failure)]]

        #expect(ToolResultPrinter(result).status.rawValue == status)
        #expect(ToolResultPrinter(["content": []]).failure == nil)
    }

    @Test func `the commands parse their arguments, and list is the default`() throws {
        try CommandSuggestion.check(["debug", "shop"], against: Patchbay.self)
        try CommandSuggestion.check(["debug", "sho", "--json"], against: Patchbay.self)
        let list = try #require(try Patchbay.parseAsRoot(["debug", "shop"]) as? DebugListCommand)
        #expect(list.app.selector == "shop")
        let show = try #require(
            try Patchbay.parseAsRoot(["debug", "show", "shop", "7", "--pointer", "/a"]) as? DebugShowCommand
        )
        #expect(show.app.selector == "shop")
        #expect((show.number, show.pointer) == (7, "/a"))
        let send = try #require(try Patchbay.parseAsRoot(["debug", "replay", "shop", "6"]) as? DebugSendCommand)
        #expect(send.number == 6)
        #expect(throws: (any Error).self) {
            _ = try Patchbay.parseAsRoot(["debug", "shot", "shop", "--output", "x", "--max-px", "5000"])
        }
    }
}
