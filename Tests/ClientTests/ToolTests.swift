import Client
import JSON
import Model
import Testing

@Suite struct ToolTests {
    private let id = EndpointID("shop")

    @Test func `the list of tools is the app's, with what the broker says of it`() async throws {
        let body = #"{"schema":1,"tools":[{"name":"tap","x":1.0}],"stale":true,"changed":false}"#
        let id = try #require(id)

        try await ScriptedBroker.with(.pieces([ScriptedBroker.json(body)])) { broker, client in
            let list = try await client.tools(of: id)

            #expect(list == ToolList(tools: [["name": "tap", "x": try JSON(parsing: "1.0")]], isStale: true))
            #expect(broker.requests.first?.hasPrefix("GET /v1/endpoints/shop/tools HTTP/1.1") == true)
        }
    }

    @Test func `a call carries its arguments as they are, and what to wait for`() async throws {
        let body = #"{"schema":1,"result":{"content":[],"isError":false}}"#
        let id = try #require(id)

        try await ScriptedBroker.with(.pieces([ScriptedBroker.json(body)])) { broker, client in
            let arguments: JSONObject = ["b": 1, "a": [true]]
            let result = try await client.call("tap", of: id, arguments: arguments, wait: 3, maxPixels: 0)

            #expect(result == ["content": [], "isError": false])
            let sent = #"{"tool":"tap","arguments":{"b":1,"a":[true]},"wait_s":3,"max_px":0}"#
            #expect(broker.requests.first?.hasSuffix("\r\n\r\n\(sent)") == true)
        }
    }

    @Test func `an answer without a result is not understood`() async throws {
        let id = try #require(id)
        try await ScriptedBroker.with(.pieces([ScriptedBroker.json("[]")])) { _, client in
            await #expect(throws: ClientError.self) { try await client.call("tap", of: id, arguments: [:]) }
        }
    }
}
