import JSON
import Testing

@testable import MCP

@Suite struct CachedAppTests {
    private static let list: JSONObject = [
        "tools": [["name": "get", "annotations": ["readOnlyHint": true]], ["name": "tap"]]
    ]
    private static let longer: JSONObject = ["tools": [["name": "get"], ["name": "tap"], ["name": "wipe"]]]

    @Test func `the first list is what later ones are compared with, until somebody looks`() {
        var record = CachedApp()

        let news = [record.note(Self.list, of: "tools/list"), record.note(Self.list, of: "tools/list")]
        #expect(news == [true, false])
        #expect(!record.hasChanged)
        let isNews = record.note(Self.longer, of: "tools/list")
        #expect(isNews && record.hasChanged)
        #expect(record.toolCount == 3)
        let looks = [record.look(), record.look()]
        #expect(looks == [true, false])
        #expect(!record.hasChanged)
    }

    @Test func `what is kept comes back as it was, the mark of a change included`() throws {
        var record = CachedApp()
        let met = try ServerInfo(
            handshake: [
                "protocolVersion": "2025-06-18", "capabilities": ["tools": [:]], "serverInfo": ["name": "AppReveal"],
                "instructions": "be kind",
            ],
            at: .http(path: "/"),
            sessionID: nil
        )
        _ = record.note(met)
        _ = record.note(Self.list, of: "tools/list")
        _ = record.note(["prompts": []], of: "prompts/list")
        _ = record.note(Self.longer, of: "tools/list")

        let again = try #require(CachedApp(record.text))

        #expect(again == record)
        #expect(again.hasChanged)
        #expect(again.list(of: "tools/list") == Self.longer)
    }

    @Test func `what a tool says of itself counts where it allows more`() {
        let traits = ToolAnnotations.all(in: Self.list)

        #expect(traits["get"]?.mayRepeat == true)
        #expect(traits["tap"] == nil)
    }

    @Test(arguments: ["", "[]", "{", "null"])
    func `a text that is none makes no record`(text: String) {
        #expect(CachedApp(text) == nil)
    }

    @Test func `a list that is too large is not kept`() {
        var record = CachedApp()

        let isKept = record.note(
            ["tools": [["name": .string(String(repeating: "x", count: 3_000_000))]]],
            of: "tools/list"
        )

        #expect(!isKept)
        #expect(record.list(of: "tools/list") == nil)
    }
}
