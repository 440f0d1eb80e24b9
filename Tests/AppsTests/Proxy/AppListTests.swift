import Model
import Samples
import Testing

@testable import Apps

/// Invalid and unusual lists.
@Suite struct AppListTests {
    /// An app that returns these lists, by cursor.
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

    private static func tools(_ app: ScriptedApp, _ body: (AppProxyFixture, Endpoint) async throws -> [JSON])
        async throws
        -> [JSON]
    {
        let fixture = AppProxyFixture(app)
        return try await body(fixture, try #require(await fixture.appear()))
    }

    private static func fromAppServer(_ fixture: AppProxyFixture, _ endpoint: Endpoint) async throws -> [JSON] {
        let handler = AppRequestHandler(endpoint.id, proxy: fixture.proxy)
        return try await handler.answer(MCPRequest("tools/list"), of: fixture.owner)["tools"]?.array ?? []
    }

    private static func fromAggregateServer(_ fixture: AppProxyFixture, _ endpoint: Endpoint) async throws -> [JSON] {
        try await AggregateRequestHandler(proxy: fixture.proxy).answer(MCPRequest("tools/list"), of: fixture.owner)[
            "tools"
        ]?
        .array
            ?? []
    }

    private static func fromProxy(_ fixture: AppProxyFixture, _ endpoint: Endpoint) async throws -> [JSON] {
        try await fixture.proxy.tools(of: endpoint, for: fixture.owner).tools.map(JSON.object)
    }

    private static func names(_ tools: [JSON]) -> [String?] { tools.map { $0["name"]?.string } }

    @Test func `the first of two tools with the same name is listed at every address`() async throws {
        let app = Self.app { _ in
            [
                "tools": [
                    ["name": "tap", "description": "first", "inputSchema": ["type": "object"]],
                    ["name": "tap", "description": "second", "inputSchema": ["type": "object"]],
                    ["name": "a", "inputSchema": ["type": "object"]],
                ]
            ]
        }

        let own = try await Self.tools(app, Self.fromAppServer)
        let all = try await Self.tools(app, Self.fromAggregateServer)
        let listed = try await Self.tools(app, Self.fromProxy)

        #expect(Self.names(own) == ["a", "tap"] && own.last?["description"] == "first")
        #expect(Self.names(all) == ["shop__a", "shop__tap"])
        #expect(Self.names(listed) == ["a", "tap"])
    }

    @Test func `two tools with the same aggregated name are listed once`() async throws {
        // Both names are truncated and have the same four hash digits.
        let names = Self.collidingNames()
        let app = Self.app { _ in
            ["tools": .array(names.map { ["name": .string($0), "inputSchema": ["type": "object"]] })]
        }

        let all = try await Self.tools(app, Self.fromAggregateServer)

        #expect(all.count == 1)
    }

    private static func collidingNames() -> [String] {
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

    @Test func `a stored list is sanitized like a live list`() async throws {
        let kept: JSON = [
            "capabilities": [:],
            "lists": ["tools/list": ["tools": [["name": "tap"], ["name": "tap"], "x", ["name": 5]]]],
        ]
        let storage = FakeCacheStorage()
        await storage.save(kept.text, of: "shop")
        let app = Self.app { _ in [:] }
        app.set(isUp: false)
        let fixture = AppProxyFixture(app, storage: storage)
        let shop = try #require(await fixture.appear())

        #expect(Self.names(try await Self.fromAppServer(fixture, shop)) == ["tap"])
        #expect(Self.names(try await Self.fromAggregateServer(fixture, shop)) == ["shop__tap"])
    }

    @Test func `a list that PHP wrote as an object is a list`() async throws {
        let app = Self.app { _ in ["tools": ["0": ["name": "a"], "2": ["name": "b"]]] }

        #expect(Self.names(try await Self.tools(app, Self.fromAppServer)) == ["a", "b"])
    }

    @Test func `a repeated cursor ends the list`() async throws {
        let app = Self.app { cursor in
            let name = "t\(cursor?.string ?? "")"
            return [
                "tools": [["name": .string(name), "inputSchema": ["type": "object"]]],
                "nextCursor": cursor == "1" ? "2" : "1",
            ]
        }

        let tools = try await Self.tools(app, Self.fromAppServer)

        #expect(Self.names(tools) == ["t", "t1", "t2"])
        #expect(app.requests.count { $0.method == "tools/list" } == 3)
    }

    @Test func `no further page is requested after a thousand tools`() async throws {
        let app = Self.app { cursor in
            let page = cursor?.string.flatMap(Int.init) ?? 0
            let tools = (0..<400).map { number -> JSON in
                ["name": .string("t\(page * 400 + number)"), "inputSchema": ["type": "object"]]
            }
            return ["tools": .array(tools), "nextCursor": .string("\(page + 1)")]
        }

        let tools = try await Self.tools(app, Self.fromAppServer)

        #expect(tools.count == 1_200)
        #expect(app.requests.count { $0.method == "tools/list" } == 3)
    }

    @Test func `invalid tools are removed and valid tools are kept`() async throws {
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
        let schema: JSON = ["type": "object", "properties": [:]]
        let expected: [JSON] = [
            ["name": "a", "inputSchema": schema], ["name": "b", "inputSchema": schema],
            ["name": "c", "inputSchema": schema], ["name": "d", "inputSchema": schema, "annotations": [:]],
            ["name": "e", "inputSchema": schema], right,
        ]

        for source in [Self.fromAppServer, Self.fromProxy] {
            let tools = try await Self.tools(app, source)

            #expect(tools == expected)
            #expect(tools.last?.text == right.text)
        }
    }
}
