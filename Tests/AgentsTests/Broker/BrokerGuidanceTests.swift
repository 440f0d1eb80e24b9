import AccessControl
import Model
import Registry
import Synchronization
import TestSupport
import Testing

@testable import Agents
@testable import Apps

/// The answers to calls with wrong names: each says which name was meant.
@Suite struct BrokerGuidanceTests {
    private static let accepted: [JSONObject] = [
        ["endpoint": "shop", "tool": "tap", "arguments": ["id": "buy"]],
        ["endpoint": "shop", "tool_name": "tap", "args": ["id": "buy"]],
        ["id": "shop", "name": "tap", "params": ["id": "buy"]],
        ["endpointId": "shop", "toolName": "tap", "input": ["id": "buy"]],
        ["endpoint_id": "shop", "name": "tap", "Arguments": ["id": "buy"], "timeout_seconds": 15],
        ["endpoint": " shop\n", "name": "tap", "arguments": ["id": "buy"]],
    ]

    @Test(arguments: accepted) func `a name with one meaning is accepted`(arguments: JSONObject) async throws {
        let fixture = BrokerFixture()
        try await fixture.addEndpoint()

        let result = try await fixture.call("endpoint_call", arguments)

        #expect(!result.isError, "\(result.text)")
        let call = try #require(fixture.apps.calls.first)
        #expect(call.tool == "tap" && call.arguments == ["id": "buy"])
    }

    private static let refused: [(String, JSONObject, String)] = [
        ("endpoint_call", ["endpoint": "shop", "name": "x", "timeout": 1], #"did you mean "timeoutSeconds"?"#),
        ("endpoint_call", ["endpoint": "shop", "name": "x", "waitSecs": 1], #"did you mean "waitSeconds"?"#),
        (
            "endpoint_call", ["endpoint": "shop", "name": "x", "element_id": "buy"],
            #"belong inside "arguments": {"arguments": {"element_id":"buy"}}"#
        ),
        (
            "endpoint_call", ["endpoint": "shop", "name": "x", "id": "buy"],
            #"belong inside "arguments": {"arguments": {"id":"buy"}}"#
        ),
        ("endpoint_call", ["endpoint": "shop", "name": "x", "tool": "y"], #"unknown argument "tool""#),
        ("endpoint_call", ["endpoint": "shop", "name": "x", "arguments": #"{"a": 1"#], "is not complete JSON"),
        ("endpoint_call", ["endpoint": "shop"], "name is missing: endpoint_tools lists"),
        ("port_forward", ["action": "close", "id": "t1"], "the other arguments are"),
        ("endpoint_wait", ["endpoint": "shop", "timeout": 1], #"did you mean "timeoutSeconds"?"#),
    ]

    @Test(arguments: refused) func `a refusal says which name was meant`(
        tool: String,
        arguments: JSONObject,
        words: String
    ) async throws {
        let fixture = BrokerFixture()
        try await fixture.addEndpoint()

        let result = try await fixture.call(tool, arguments)

        #expect(result.isError && result.text.contains(words), "\(result.text)")
        #expect(fixture.apps.calls.isEmpty)
    }

    @Test func `a tool of an app at the broker's address gets a result that shows the right call`() async throws {
        let fixture = BrokerFixture()
        let shop = try await fixture.addEndpoint()

        let result = try await fixture.call("tap_element", ["element_id": "buy"])

        #expect(result.isError, "\(result.text)")
        let call = #"{"endpoint":"\#(shop)","name":"tap_element","arguments":{"element_id":"buy"}}"#
        #expect(result.text.hasSuffix("endpoint_call: \(call)"), "\(result.text)")
        let mistyped = try await fixture.call("endpoint_cal")
        #expect(mistyped.isError && mistyped.text.hasSuffix("did you mean endpoint_call?"), "\(mistyped.text)")
        // Several endpoints: none is chosen.
        try await fixture.addEndpoint("com.example.bank", on: "pixel.local")
        #expect(try await fixture.call("tap_element").text.contains(#""endpoint":"ID""#))
    }

    @Test(arguments: ["endpoint_tools", "endpoint_call", "endpoint_pair", "endpoint_wait"])
    func `a missing endpoint is answered with the IDs of approved endpoints`(tool: String) async throws {
        let fixture = BrokerFixture()
        let none = try await fixture.call(tool, ["endpoint": " "])
        let shop = try await fixture.addEndpoint()
        let stranger = try await fixture.addEndpoint("com.example.bank", on: "pixel.local")
        fixture.approvals.state.withLock { $0.unapproved = [stranger] }

        let result = try await fixture.call(tool)

        #expect(none.isError && none.text.contains("endpoint_wait for it"), "\(none.text)")
        #expect(result.isError && result.text == "endpoint is missing: the endpoints are \(shop)", "\(result.text)")
    }

    @Test func `a mistyped ID is answered with the nearest approved one`() async throws {
        let fixture = BrokerFixture()
        let shop = try await fixture.addEndpoint()
        let wrong = String(shop.text.dropLast()) + "x"

        let call = try await fixture.call("endpoint_call", ["endpoint": .string(wrong), "name": "tap"])
        // Answers at once; otherwise the wait would never end, because the clock stands still.
        let wait = try await fixture.call("endpoint_wait", ["endpoint": .string(wrong)])
        let list = try await fixture.call("endpoint_list", ["endpoint": .string(wrong)])

        #expect(call.isError && call.text.contains("did you mean \(shop)?"), "\(call.text)")
        #expect(wait.isError && wait.text.contains("did you mean \(shop)?"), "\(wait.text)")
        #expect(list.text.contains("did you mean \(shop)?"), "\(list.text)")
    }

    @Test(arguments: [
        ("shop-iphone-12", "shop-iphone-15", false), ("shop-iphone2", "shop-iphone", false),
        ("shop-iphnoe", "shop-iphone", true), ("shopiphone", "shop-iphone", true), ("bank", "shop-iphone", false),
        (String(repeating: "x", count: 100_000), "shop-iphone", false),
    ])
    func `names that differ in digits only are no typing errors`(text: String, id: String, isMistyped: Bool) {
        #expect((EndpointSuggestions(ids: [id]).mistyped(text) != nil) == isMistyped)
    }

    @Test func `a wait that ends without an endpoint of that name lists those there are`() async throws {
        let fixture = BrokerFixture()
        let shop = try await fixture.addEndpoint()

        async let waited = fixture.call("endpoint_wait", ["endpoint": "zebra", "timeoutSeconds": 20])
        await fixture.clock.waitForSleepers(2)
        fixture.clock.advance(by: .seconds(20))

        let result = try await waited
        #expect(result.text.hasSuffix("no endpoint has that name: the endpoints are \(shop)"), "\(result.text)")
    }

    @Test func `a query without a hit is answered with the names there are`() async throws {
        let fixture = BrokerFixture()
        let shop = try await fixture.addEndpoint()
        fixture.apps.set(.success(AppToolList(tools: [["name": "tap_element"], ["name": "type_text"]])), of: shop)

        let near = try await fixture.call("endpoint_tools", ["endpoint": "shop", "query": "tap_elemnt"])
        let far = try await fixture.call("endpoint_tools", ["endpoint": "shop", "query": "zebra"])

        #expect(near.text.contains("the nearest names are tap_element"), "\(near.text)")
        #expect(far.text.contains("some of the names are tap_element, type_text"), "\(far.text)")
        #expect(far.text.hasSuffix("without query, all 2 are listed"))
    }

    @Test func `an unknown URI is answered with the nearest one, if the principal may read it`() async throws {
        let fixture = BrokerFixture()
        let shop = try await fixture.addEndpoint()
        func message(_ uri: String, of principal: Principal = BrokerFixture.owner) async throws -> String {
            let error = await #expect(throws: RPCError.self) {
                try await fixture.handler.answer(MCPRequest("resources/read", ["uri": .string(uri)]), of: principal)
            }
            return error?.message ?? ""
        }

        #expect(try await message("patchbay://endpoint/\(shop)x").contains("did you mean patchbay://endpoint/\(shop)?"))
        #expect(try await message("patchbay://endpoins").contains("did you mean patchbay://endpoints?"))
        #expect(try await message("file:///x").hasSuffix(": resources/list lists those there are"))
        let other = BrokerFixture.grant([.registryRead], on: .bundles(["other"]))
        #expect(try await !message("patchbay://endpoint/\(shop)x", of: other).contains(shop.text + "?"))
    }

    @Test func `a blocked endpoint is not offered for approval`() async throws {
        let fixture = BrokerFixture()
        let sighting = Sighting(
            id: Sighting.ID(source: .bonjour, key: "x"),
            kind: .dartVM,
            app: SanitizedText("com.example.blocked"),
            appIsBundleID: true,
            name: SanitizedText("blocked"),
            machine: SanitizedText("far.local"),
            routes: [],
            blocked: "8.8.8.8 is not on the network link"
        )
        await fixture.registry.apply(.seen(sighting))
        let id = try #require(await fixture.registry.endpoint(seenAs: sighting.id)).id
        fixture.approvals.state.withLock { $0.unapproved = [id] }

        let pair = try await fixture.call("endpoint_pair", ["endpoint": .string(id.text)])
        let call = try await fixture.call("endpoint_call", ["endpoint": "blocked", "name": "tap"])
        let list = try await fixture.call("endpoint_list")

        #expect(pair.structure?["state"] == "denied", "\(pair.text)")
        #expect(pair.text.contains("8.8.8.8") && !pair.text.contains("patchbay approve"), "\(pair.text)")
        #expect(call.isError && call.text.contains("is blocked") && !call.text.contains("patchbay approve"))
        #expect(!JSON.object(list).text.contains("port_forward"))
    }
}
