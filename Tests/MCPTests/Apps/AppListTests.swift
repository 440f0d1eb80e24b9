import JSON
import Model
import Testing

@testable import MCP

/// What becomes of lists that are not as they should be.
@Suite struct AppListTests {
    /// An app whose answers to `tools/list` are these, by the cursor.
    private static func app(_ list: @escaping @Sendable (JSON?) -> JSON) -> ScriptedApp {
        ScriptedApp { request in
            switch request.method {
            case "initialize":
                .result(["protocolVersion": "2025-06-18", "capabilities": [:], "serverInfo": ["name": "x"]])
            case "tools/list": .result(list(request.body["params"]?["cursor"]))
            case let method where method.hasPrefix("notifications/"): .http(204, [], "")
            default: .error(-32_601, "Method not found")
            }
        }
    }

    private static func tools(_ app: ScriptedApp, _ body: (DeskRig, Endpoint) async throws -> [JSON]) async throws
        -> [JSON]
    {
        let rig = DeskRig(app)
        return try await body(rig, try #require(await rig.appear()))
    }

    private static func atItsAddress(_ rig: DeskRig, _ endpoint: Endpoint) async throws -> [JSON] {
        let server = AppMCPServer(endpoint.id, desk: rig.desk)
        return try await server.answer(MCPRequest("tools/list"), of: rig.owner)["tools"]?.array ?? []
    }

    private static func withTheOthers(_ rig: DeskRig, _ endpoint: Endpoint) async throws -> [JSON] {
        try await AggregateMCPServer(desk: rig.desk).answer(MCPRequest("tools/list"), of: rig.owner)["tools"]?.array
            ?? []
    }

    private static func forTheBroker(_ rig: DeskRig, _ endpoint: Endpoint) async throws -> [JSON] {
        try await rig.desk.tools(of: endpoint, for: rig.owner).tools.map(JSON.object)
    }

    private static func names(_ tools: [JSON]) -> [String?] { tools.map { $0["name"]?.string } }

    @Test func `of two tools with one name the first is listed, wherever they are`() async throws {
        let app = Self.app { _ in
            [
                "tools": [
                    ["name": "tap", "description": "first", "inputSchema": ["type": "object"]],
                    ["name": "tap", "description": "second", "inputSchema": ["type": "object"]],
                    ["name": "a", "inputSchema": ["type": "object"]],
                ]
            ]
        }

        let own = try await Self.tools(app, Self.atItsAddress)
        let all = try await Self.tools(app, Self.withTheOthers)
        let told = try await Self.tools(app, Self.forTheBroker)

        #expect(Self.names(own) == ["a", "tap"] && own.last?["description"] == "first")
        #expect(Self.names(all) == ["shop__a", "shop__tap"])
        #expect(Self.names(told) == ["a", "tap"])
    }

    @Test func `two tools that get one name among all apps' are one`() async throws {
        // Both are cut, and the four digits of their hashes are the same.
        let names = Self.alike()
        let app = Self.app { _ in
            ["tools": .array(names.map { ["name": .string($0), "inputSchema": ["type": "object"]] })]
        }

        let all = try await Self.tools(app, Self.withTheOthers)

        #expect(all.count == 1)
    }

    private static func alike() -> [String] {
        let long = String(repeating: "x", count: 48)
        var seen: [String: String] = [:]
        for number in 0..<100_000 {
            let name = "\(long)\(number)"
            if let other = seen.updateValue(name, forKey: ToolNamespace.name(of: name, alias: "shop")) {
                return [other, name]
            }
        }
        return []
    }

    @Test func `a list of an earlier run is not believed more than one of the app's`() async throws {
        let kept: JSON = [
            "capabilities": [:],
            "lists": ["tools/list": ["tools": [["name": "tap"], ["name": "tap"], "x", ["name": 5]]]],
        ]
        let memory = FakeMemory()
        await memory.keep(kept.text, of: try #require(EndpointID("shop")))
        let app = Self.app { _ in [:] }
        app.set(isUp: false)
        let rig = DeskRig(app, memory: memory)
        let shop = try #require(await rig.appear())

        #expect(Self.names(try await Self.atItsAddress(rig, shop)) == ["tap"])
        #expect(Self.names(try await Self.withTheOthers(rig, shop)) == ["shop__tap"])
    }

    @Test func `a cursor that comes a second time ends the list`() async throws {
        let app = Self.app { cursor in
            let name = "t\(cursor?.string ?? "")"
            return [
                "tools": [["name": .string(name), "inputSchema": ["type": "object"]]],
                "nextCursor": cursor == "1" ? "2" : "1",
            ]
        }

        let tools = try await Self.tools(app, Self.atItsAddress)

        #expect(Self.names(tools) == ["t", "t1", "t2"])
        #expect(app.requests.count { $0.method == "tools/list" } == 3)
    }

    @Test func `no further page is asked for when there are a thousand tools`() async throws {
        let app = Self.app { cursor in
            let page = cursor?.string.flatMap(Int.init) ?? 0
            let tools = (0..<400).map { number -> JSON in
                ["name": .string("t\(page * 400 + number)"), "inputSchema": ["type": "object"]]
            }
            return ["tools": .array(tools), "nextCursor": .string("\(page + 1)")]
        }

        let tools = try await Self.tools(app, Self.atItsAddress)

        #expect(tools.count == 1_200)
        #expect(app.requests.count { $0.method == "tools/list" } == 3)
    }

    @Test func `what is no tool takes no other tool away from clients`() async throws {
        let right: JSON = [
            "title": "Tap", "name": "tap", "x": [1, .null], "inputSchema": ["properties": [:], "type": "object"],
            "annotations": ["readOnlyHint": true, "mine": 5], "description": "größe \u{202E}",
        ]
        let app = Self.app { _ in
            [
                "tools": [
                    "str", .null, ["name": 5], ["name": ""], ["description": "nameless"], right, ["name": "a"],
                    ["name": "b", "inputSchema": "none", "description": 5, "title": .null],
                    ["name": "c", "inputSchema": [:], "outputSchema": [], "icons": [:], "execution": true],
                    [
                        "name": "d", "inputSchema": ["type": "object"],
                        "annotations": ["title": 5, "idempotentHint": "y"],
                    ],
                    ["name": "e", "inputSchema": ["type": "object"], "annotations": "read-only", "_meta": 1],
                ]
            ]
        }
        let schema: JSON = ["type": "object"]
        let expected: [JSON] = [
            ["name": "a", "inputSchema": schema], ["name": "b", "inputSchema": schema],
            ["name": "c", "inputSchema": schema], ["name": "d", "inputSchema": schema, "annotations": [:]],
            ["name": "e", "inputSchema": schema], right,
        ]

        for reader in [Self.atItsAddress, Self.forTheBroker] {
            let tools = try await Self.tools(app, reader)

            #expect(tools == expected)
            #expect(tools.last?.text == right.text)
        }
    }
}
