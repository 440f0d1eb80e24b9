import Model
import Synchronization
import Testing

@testable import Agents
@testable import Apps

/// Rules for all tools, and the tool `endpoint_call`.
@Suite struct BrokerToolTests {
    @Test func `a call passes its arguments and limits to the app, and the result is returned unchanged`() async throws
    {
        let fixture = BrokerFixture()
        try await fixture.addEndpoint()

        let result = try await fixture.call(
            "endpoint_call",
            ["endpoint": "shop", "name": "tap", "arguments": ["id": "buy"], "waitSeconds": 3, "maxPixels": 0]
        )

        let call = try #require(fixture.apps.calls.first)
        #expect(call.tool == "tap" && call.arguments == ["id": "buy"])
        #expect(call.wait == .seconds(3) && call.maxPixels == 0)
        #expect(result == ["content": [["type": "text", "text": "tapped"]], "own": 1])
    }

    @Test(arguments: ["tools/list", "resources/templates/list"]) func `a list with one page rejects every other cursor`(
        method: String
    ) async throws {
        let handler = BrokerFixture().handler

        let first = try await handler.answer(MCPRequest(method), of: BrokerFixture.owner)

        #expect(try await handler.answer(MCPRequest(method, ["cursor": .null]), of: BrokerFixture.owner) == first)
        await #expect(throws: RPCError.invalidParams("unknown cursor")) {
            try await handler.answer(MCPRequest(method, ["cursor": "made-up"]), of: BrokerFixture.owner)
        }
    }

    @Test func `a call waits 10 s and scales images to 1,568 pixels by default`() async throws {
        let fixture = BrokerFixture()
        try await fixture.addEndpoint()

        _ = try await fixture.call("endpoint_call", ["endpoint": "shop", "name": "tap"])

        #expect(fixture.apps.calls.first?.wait == .seconds(10))
        #expect(fixture.apps.calls.first?.maxPixels == 1_568)
    }

    @Test func `an app is listed before its first call only, so that the arguments can be checked`() async throws {
        let fixture = BrokerFixture()
        let shop = try await fixture.addEndpoint()
        let call: JSONObject = ["endpoint": "shop", "name": "tap"]

        _ = try await fixture.call("endpoint_call", call)
        #expect(fixture.apps.listed.withLock { $0 } == [shop] && fixture.apps.calls.count == 1)
        fixture.apps.set(.success(AppToolList(tools: [["name": "tap"]])), of: shop)
        _ = try await fixture.call("endpoint_call", call)

        #expect(fixture.apps.listed.withLock { $0 } == [shop] && fixture.apps.calls.count == 2)
    }

    @Test func `arguments may be a JSON string with an object`() async throws {
        let fixture = BrokerFixture()
        try await fixture.addEndpoint()
        let text: JSON = #"{"endpoint": "shop", "name": "tap", "arguments": "{\"id\": \"buy\"}"}"#
        let request = MCPRequest("tools/call", ["name": "endpoint_call", "arguments": text])

        let result = try await fixture.handler.answer(request, of: BrokerFixture.owner)

        #expect(!result.isError, "\(result.text)")
        #expect(fixture.apps.calls.first?.arguments == ["id": "buy"])
    }

    private static let wrong: [(String, JSONObject, String)] = [
        ("endpoint_call", ["endpoint": "shop"], "name"),
        ("endpoint_call", ["endpoint": "shop", "name": true], "name"),
        ("endpoint_call", ["endpoint": "shop", "name": "x", "waitSeconds": 61], "waitSeconds"),
        ("endpoint_call", ["endpoint": "shop", "name": "x", "arguments": []], "arguments"),
        ("endpoint_call", ["endpoint": "shop", "name": "x", "arguments": "[1]"], "arguments"),
        ("endpoint_call", ["endpoint": "shop", "name": "x", "arguments": "id=buy"], "arguments"),
        ("endpoint_call", ["endpoint": "shop", "name": "x", "wait": 1], "waitSeconds"),
        ("endpoint_list", ["state": "sleeping"], "online, offline, any"), ("endpoint_wait", [:], "endpoint"),
        ("port_forward", [:], "action"), ("port_forward", ["action": "open"], "endpoint"),
        ("endpoint_tools", [:], "endpoint"), ("endpoint_pair", ["endpoint": ""], "endpoint"),
    ]

    @Test(arguments: wrong)
    func `an invalid argument is named in the result, and no app is called`(
        tool: String,
        arguments: JSONObject,
        name: String
    ) async throws {
        let fixture = BrokerFixture()
        try await fixture.addEndpoint()

        let result = try await fixture.call(tool, arguments)

        #expect(result.isError && result.text.contains(name), "\(result.text)")
        #expect(fixture.apps.calls.isEmpty)
    }

    @Test func `a short name never selects an unapproved endpoint, and a full ID always does`() async throws {
        let fixture = BrokerFixture()
        let stranger = try await fixture.addEndpoint("sho", on: "p-i")
        fixture.approvals.state.withLock { $0.unapproved = [stranger] }
        func call(_ text: String) async throws -> JSONObject {
            try await fixture.call("endpoint_call", ["endpoint": .string(text), "name": "tap"])
        }

        let alone = try await call("sho")
        #expect(alone.isError && alone.text.contains("only \(stranger), which is not approved"), "\(alone.text)")
        #expect(alone.text.hasSuffix("patchbay approve \(stranger) --address 192.168.1.20"), "\(alone.text)")
        #expect(fixture.apps.calls.isEmpty)

        let shop = try await fixture.addEndpoint()
        _ = try await call("sho")
        _ = try await call(stranger.text.uppercased())
        #expect(fixture.apps.calls.map(\.endpoint.id) == [shop, stranger])
    }

    @Test(arguments: [
        ("endpoint_list", Scope.registryRead), ("endpoint_tools", .endpointCall), ("endpoint_call", .endpointCall),
        ("endpoint_pair", .registryRead), ("endpoint_wait", .registryRead), ("port_forward", .tunnelOpen),
    ])
    func `each tool requires its scope`(tool: String, scope: Scope) async throws {
        let fixture = BrokerFixture()
        try await fixture.addEndpoint()
        let others = Set(Scope.allCases).subtracting([scope, .admin])

        let result = try await fixture.call(tool, of: BrokerFixture.grant(others))

        #expect(result.isError && result.text.contains(scope.rawValue))
    }

    @Test func `endpoints outside a grant are invisible to its holder`() async throws {
        let fixture = BrokerFixture()
        let shop = try await fixture.addEndpoint()
        try await fixture.addEndpoint("com.example.bank", on: "pixel.local")
        let principal = BrokerFixture.grant([.registryRead, .endpointCall], on: .endpoints([shop]))

        let list = try await fixture.call("endpoint_list", of: principal)
        let call = try await fixture.call("endpoint_call", ["endpoint": "bank", "name": "x"], of: principal)

        #expect(list.structure?["endpoints"]?.array?.count == 1)
        #expect(call.isError && call.text.contains("no endpoint matches"))
    }
}
