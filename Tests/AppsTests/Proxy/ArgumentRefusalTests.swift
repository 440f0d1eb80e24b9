import AccessControl
import Model
import Samples
import Synchronization
import Testing

@testable import Apps

/// Calls with arguments that the schema of the tool does not allow.
@Suite struct ArgumentRefusalTests {
    private static func schema(_ formats: JSON) -> JSON {
        [
            "type": "object",
            "properties": ["format": ["type": "string", "enum": formats], "seconds": ["type": "number"]],
        ]
    }

    /// An app with one tool. `formats` returns the values that the tool's argument `format` may have.
    private static func app(_ formats: @escaping @Sendable () -> JSON = { ["png", "jpeg"] }) -> ScriptedApp {
        let app = ScriptedApp.appReveal()
        return ScriptedApp { request in
            guard request.method == "tools/list" else { return app.reply(to: request) }
            return .result(["tools": [["name": "shoot", "inputSchema": schema(formats())]]])
        }
    }

    private static func text(_ result: JSONObject) -> String { result["content"]?.array?.first?["text"]?.string ?? "" }

    @Test(
        arguments: [
            (["format": "gif"], #""format" must be one of "png", "jpeg", but is "gif""#),
            (["seconds": "x"], #""seconds" must be a number, but is a text"#),
        ] as [(JSONObject, String)]
    )
    func `an agent's call with arguments that the schema does not allow is not delivered`(
        arguments: JSONObject,
        problem: String
    ) async throws {
        let app = Self.app()
        let fixture = AppProxyFixture(app)
        let shop = try #require(await fixture.appear())
        _ = try await fixture.proxy.tools(of: shop, for: fixture.owner)

        let result = await fixture.call(ToolCall("shoot", of: shop, arguments: arguments), of: fixture.owner)

        #expect(result["isError"] == true && result["_meta"]?["patchbay/failure"] == "invalid-arguments")
        let text = "\(shop.id): shoot was not called: \(problem): endpoint_tools shows the arguments"
        #expect(Self.text(result) == text)
        #expect(app.calls.isEmpty && fixture.authorizer.events.map(\.outcome) == ["invalid-arguments"])
    }

    @Test func `a direct call with wrong arguments is not delivered at any address`() async throws {
        let app = Self.app()
        let fixture = AppProxyFixture(app)
        let shop = try #require(await fixture.appear())
        let alias = ToolNamespace.alias(of: shop.id)
        _ = try await fixture.proxy.tools(of: shop, for: fixture.owner)

        let direct = try await AppRequestHandler(shop.id, proxy: fixture.proxy).answer(
            MCPRequest("tools/call", ["name": "shoot", "arguments": #"{"format": "gif"}"#]),
            of: fixture.owner
        )
        let together = try await AggregateRequestHandler(proxy: fixture.proxy).answer(
            MCPRequest("tools/call", ["name": .string("\(alias)__shoot"), "arguments": ["format": "gif"]]),
            of: fixture.owner
        )

        #expect(direct["isError"] == true && Self.text(direct).hasSuffix(": tools/list shows the arguments"))
        #expect(together["isError"] == true && app.calls.isEmpty)
    }

    @Test func `a call that the schema of a new build allows is delivered`() async throws {
        let isRebuilt = Mutex(false)
        let app = Self.app { isRebuilt.withLock { $0 } ? ["gif"] : ["png"] }
        let fixture = AppProxyFixture(app)
        let shop = try #require(await fixture.appear())
        let call = ToolCall("shoot", of: shop, arguments: ["format": "gif"])
        _ = try await fixture.proxy.tools(of: shop, for: fixture.owner)

        let before = await fixture.call(call, of: fixture.owner)
        isRebuilt.withLock { $0 = true }
        let after = await fixture.call(call, of: fixture.owner)

        #expect(before["isError"] == true && after["isError"] == nil && app.calls.count == 1)
    }

    @Test func `an app that was never listed validates the arguments itself`() async throws {
        let app = Self.app()
        let fixture = AppProxyFixture(app)
        let shop = try #require(await fixture.appear())

        let call = ToolCall("shoot", of: shop, arguments: ["format": "gif"])
        let result = await fixture.call(call, of: fixture.owner)

        #expect(result["isError"] == nil && app.calls.count == 1)
        #expect(app.requests.contains { $0.method == "tools/list" } == false)
    }

    @Test func `a grant without access to the app learns nothing about the arguments`() async throws {
        let fixture = AppProxyFixture(Self.app())
        let shop = try #require(await fixture.appear())
        _ = try await fixture.proxy.tools(of: shop, for: fixture.owner)

        let call = ToolCall("shoot", of: shop, arguments: ["format": "gif"])
        let result = await fixture.call(call, of: .holder(of: "abcdefgh", [.registryRead]))

        #expect(result["_meta"]?["patchbay/failure"] == "not-permitted")
    }
}
