import Model
import Testing

@testable import Apps

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
        var record = CachedApp()
        _ = record.record(Self.list, of: CachedApp.tools)

        #expect(record.annotations(of: "get")?.mayRepeat == true)
        #expect(record.annotations(of: "tap") == nil)
    }

    @Test func `two tools whose names are canonically equivalent have their own annotations and schemas`() {
        var record = CachedApp()
        _ = record.record(
            [
                "tools": [
                    ["name": "caf\u{E9}", "inputSchema": ["title": "composed"]],
                    ["name": "cafe\u{301}", "inputSchema": [:], "annotations": ["readOnlyHint": true]],
                ]
            ],
            of: CachedApp.tools
        )

        #expect(record.annotations(of: "caf\u{E9}") == nil)
        #expect(record.annotations(of: "cafe\u{301}")?.isReadOnly == true)
        #expect(record.schema(of: "caf\u{E9}") == ["title": "composed"])
    }

    @Test func `a schema that is deeper than a request may be is kept and stored`() throws {
        let schema = (0..<200).reduce(JSON.object([:])) { schema, _ in ["items": schema] }
        var record = CachedApp()
        _ = record.record(["tools": [["name": "deep", "inputSchema": schema]]], of: CachedApp.tools)

        #expect(try #require(CachedApp(record.text)).schema(of: "deep") == schema)
    }

    @Test(arguments: ["", "[]", "{", "null"])
    func `an invalid text makes no record`(text: String) { #expect(CachedApp(text) == nil) }

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
