import JSON
import Testing

@testable import MCP

@Suite struct CachedAppTests {
    private static let list: JSONObject = [
        "tools": [["name": "get", "annotations": ["readOnlyHint": true]], ["name": "tap"]]
    ]
    private static let longer: JSONObject = ["tools": [["name": "get"], ["name": "tap"], ["name": "wipe"]]]

    @Test func `later lists are compared with the first one until a client fetches the list`() {
        var record = CachedApp()

        let changes = [record.record(Self.list, of: "tools/list"), record.record(Self.list, of: "tools/list")]
        #expect(changes == [true, false])
        #expect(!record.hasChanged)
        let changed = record.record(Self.longer, of: "tools/list")
        #expect(changed && record.hasChanged)
        #expect(record.toolCount == 3)
        let marks = [record.markSeen(), record.markSeen()]
        #expect(marks == [true, false])
        #expect(!record.hasChanged)
    }

    @Test func `a stored record is restored unchanged, including the change mark`() throws {
        var record = CachedApp()
        let server = try ServerInfo(
            handshake: [
                "protocolVersion": "2025-06-18", "capabilities": ["tools": [:]], "serverInfo": ["name": "AppReveal"],
                "instructions": "be kind",
            ],
            at: .http(path: "/"),
            sessionID: nil
        )
        _ = record.record(server)
        _ = record.record(Self.list, of: "tools/list")
        _ = record.record(["prompts": []], of: "prompts/list")
        _ = record.record(Self.longer, of: "tools/list")

        let again = try #require(CachedApp(record.text))

        #expect(again.text == record.text && again.digest == record.digest && again.toolCount == record.toolCount)
        #expect(again.hasChanged)
        // The changes of this run are not those of the next one.
        #expect(record.changedMethods == ["tools/list"] && again.changedMethods.isEmpty)
        #expect(again.list(of: "tools/list") == Self.longer)
    }

    @Test func `a read-only tool may be repeated`() {
        let annotations = ToolAnnotations.all(in: Self.list)

        #expect(annotations["get"]?.mayRepeat == true)
        #expect(annotations["tap"] == nil)
    }

    @Test(arguments: ["", "[]", "{", "null"])
    func `an invalid text makes no record`(text: String) {
        #expect(CachedApp(text) == nil)
    }

    @Test func `a list over the size limit is not cached`() {
        var record = CachedApp()

        let isStored = record.record(
            ["tools": [["name": .string(String(repeating: "x", count: 3_000_000))]]],
            of: "tools/list"
        )

        #expect(!isStored)
        #expect(record.list(of: "tools/list") == nil)
    }
}
