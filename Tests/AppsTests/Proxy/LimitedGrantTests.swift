import AccessControl
import Model
import Samples
import Testing

@testable import Apps

/// Grants that are limited to certain tools, at each way to call an app.
@Suite struct LimitedGrantTests {
    private static let reader = Principal.holder(of: "r", [.endpointCall, .registryRead], tools: .readOnly)
    private static let tapper = Principal.holder(of: "t", [.endpointCall], tools: .named(["tap"]))

    private static func names(_ list: JSONObject) -> [String] {
        (list["tools"]?.array ?? []).compactMap { $0["name"]?.string }
    }

    private static func text(_ result: JSONObject) -> String { result["content"]?.array?.first?["text"]?.string ?? "" }

    private static func call(_ tool: String) -> MCPRequest {
        MCPRequest("tools/call", ["name": .string(tool), "arguments": [:]])
    }

    /// An app with an endpoint of this kind, which lists `tap` and the read-only `get_screen`.
    private func appear(_ app: ScriptedApp, kind: EndpointKind = .mcp) async throws -> (AppProxyFixture, Endpoint) {
        let fixture = AppProxyFixture(app) { $0.wait = .milliseconds(50) }
        return (fixture, try #require(await fixture.appear(kind: kind)))
    }

    @Test func `a read-only grant calls a tool that the app declares as read-only, also if it was never listed`()
        async throws
    {
        let app = ScriptedApp.appReveal()
        let (fixture, shop) = try await appear(app)

        let screen = await fixture.call(ToolCall("get_screen", of: shop), of: Self.reader)
        let tap = await fixture.call(ToolCall("tap", of: shop), of: Self.reader)

        #expect(screen["isError"] == nil, "\(Self.text(screen))")
        #expect(tap["isError"] == true && tap["_meta"] == ["patchbay/failure": "not-permitted"])
        #expect(app.calls.compactMap { $0.body["params"]?["name"]?.string } == ["get_screen"])
        #expect(fixture.authorizer.events.map(\.outcome) == ["answered", "not-permitted"])
    }

    @Test func `the refusal says which tool, which limit, and who can change it`() async throws {
        let (fixture, shop) = try await appear(ScriptedApp.appReveal())

        let tap = await fixture.call(ToolCall("tap", of: shop), of: Self.reader)
        let screen = await fixture.call(ToolCall("get_screen\u{1B}", of: shop), of: Self.tapper)

        #expect(
            Self.text(tap)
                == "your grant is limited to read-only tools, and \"tap\" of \(shop.id) is not known to be one: "
                + "only an owner can give a grant with other limits (patchbay pair)"
        )
        #expect(
            Self.text(screen) == "your grant is limited to the tool tap, and does not allow "
                + "\"get_screen\u{FFFD}\" of \(shop.id): only an owner can give a grant with other limits (patchbay pair)"
        )
        let human = AppError.toolNotAllowed("tap", limit: .readOnly).hint(for: .human, at: shop.id)
        #expect(human == "an owner can create an invite with other limits: patchbay pair")
    }

    @Test func `a limited grant is refused in the same way at every server`() async throws {
        let app = ScriptedApp.appReveal()
        let (fixture, shop) = try await appear(app)
        let own = AppRequestHandler(shop.id, proxy: fixture.proxy)
        let all = AggregateRequestHandler(proxy: fixture.proxy)
        let alias = ToolNamespace.alias(of: shop.id)

        for (handler, prefix) in [(own, ""), (all, "\(alias)__")] as [(any MCPRequestHandler, String)] {
            #expect(
                Self.names(try await handler.answer(MCPRequest("tools/list"), of: fixture.owner))
                    == ["\(prefix)get_screen", "\(prefix)tap"]
            )
            let cases = [(Self.reader, "get_screen", "tap"), (Self.tapper, "tap", "get_screen")]
            for (principal, allowed, refused) in cases {
                let list = try await handler.answer(MCPRequest("tools/list"), of: principal)
                let good = try await handler.answer(Self.call(prefix + allowed), of: principal)
                let bad = try await handler.answer(Self.call(prefix + refused), of: principal)

                #expect(Self.names(list) == [prefix + allowed])
                #expect(good["isError"] == nil, "\(Self.text(good))")
                #expect(bad["_meta"] == ["patchbay/failure": "not-permitted"], "\(Self.text(bad))")
            }
        }
        #expect(app.calls.count == 4)
        #expect(try await fixture.proxy.tools(of: shop, for: Self.reader).tools.map { $0["name"] } == ["get_screen"])
    }

    @Test func `a tool that a new launch no longer declares as read-only is refused`() async throws {
        let declared = Counter()
        let app = ScriptedApp { request in
            switch request.method {
            case "initialize":
                .result([
                    "protocolVersion": "2025-06-18", "capabilities": ["tools": [:]],
                    "serverInfo": ["name": "x", "version": "1"],
                ])
            case "tools/list":
                .result(["tools": [["name": "get", "annotations": ["readOnlyHint": .bool(declared.enter() == 1)]]]])
            case "tools/call": .result(["content": []])
            case let method where method.hasPrefix("notifications/"): .http(204, [], "")
            default: .error(-32_601, "Method not found")
            }
        }
        let (fixture, shop) = try await appear(app)

        let before = await fixture.call(ToolCall("get", of: shop), of: Self.reader)
        fixture.proxy.pool.setListDue(true, of: shop.id)
        let after = await fixture.call(ToolCall("get", of: shop), of: Self.reader)

        #expect(before["isError"] == nil)
        #expect(after["_meta"] == ["patchbay/failure": "not-permitted"])
        #expect(app.calls.count == 1)
    }

    @Test func `methods that change nothing pass, and unknown ones are refused`() async throws {
        let app = ScriptedApp { request in
            switch request.method {
            case "initialize":
                .result([
                    "protocolVersion": "2025-06-18", "capabilities": ["resources": [:], "prompts": [:]],
                    "serverInfo": ["name": "x", "version": "1"],
                ])
            case let method where method.hasPrefix("notifications/"): .http(204, [], "")
            case "server/discover": .error(-32_601, "Method not found")
            default: .result([:])
            }
        }
        let (fixture, shop) = try await appear(app)
        let handler = AppRequestHandler(shop.id, proxy: fixture.proxy)
        let passed = ["resources/list", "resources/read", "prompts/list", "prompts/get", "completion/complete"]

        for principal in [Self.reader, Self.tapper] {
            for method in passed { _ = try await handler.answer(MCPRequest(method), of: principal) }
            let error = await #expect(throws: RPCError.self) {
                try await handler.answer(MCPRequest("app/restart"), of: principal)
            }
            #expect(error?.message.contains("\"app/restart\"") == true && error?.data?["failure"] == "not-permitted")
        }
        _ = try await handler.answer(MCPRequest("app/restart"), of: fixture.owner)
        #expect(app.requests.count { $0.method == "app/restart" } == 1)
        #expect(Set(passed).isSubset(of: app.requests.map(\.method)))
    }

    @Test func `a limited grant without access to the app is told that`() async throws {
        let (fixture, shop) = try await appear(ScriptedApp.appReveal())
        let other = Principal.holder(of: "o", [.endpointCall], on: .endpoints([]), tools: .named(["tap"]))

        let result = await fixture.call(ToolCall("tap", of: shop), of: other)

        #expect(Self.text(result).hasPrefix("your grant does not include \(shop.id)"))
    }

    @Test(
        arguments: [
            ("screenshot", EndpointKind.appreveal, nil, ToolEffect.readOnly), ("screenshot", .mcp, nil, .changing),
            ("screenshot", .appreveal, false, .changing), ("tap_element", .appreveal, nil, .changing),
            ("web_evaluate", .appreveal, nil, .changing), ("get", .mcp, true, .readOnly),
            ("get", .mcp, false, .changing),
            ("batch", .appreveal, true, .changing), ("batch", .mcp, true, .changing),
        ] as [(String, EndpointKind, Bool?, ToolEffect)]
    )
    func `a tool is read-only if its app or AppReveal's reference says so, and never if it calls tools`(
        tool: String,
        kind: EndpointKind,
        hint: Bool?,
        effect: ToolEffect
    ) {
        var declaration: JSONObject = ["name": .string(tool)]
        if let hint { declaration["annotations"] = ["readOnlyHint": .bool(hint)] }
        #expect(ToolEffect(of: Self.call(tool), ToolAnnotations(of: declaration), on: kind) == effect)
    }

    @Test func `a call without a tool's name is not read-only`() {
        let request = MCPRequest("tools/call", ["name": 5])
        #expect(ToolEffect(of: request, ToolAnnotations(of: [:]), on: .appreveal) == .changing)
    }
}
