import Client
import Model
import Samples
import Testing

@Suite struct ToolTests {
    private let id: EndpointID = "shop"

    @Test func `a tool list has the app's tools and the broker's state`() async throws {
        let body = #"{"schema":1,"tools":[{"name":"tap","x":1.0}],"stale":true,"changed":false}"#

        try await ScriptedBroker.with(.pieces([ScriptedBroker.json(body)])) { broker, client in
            let list = try await client.tools.list(of: id)

            #expect(list == ToolList(tools: [["name": "tap", "x": try JSON(parsing: "1.0")]], isStale: true))
            #expect(broker.requests.first?.hasPrefix("GET /v1/endpoints/shop/tools HTTP/1.1") == true)
        }
    }

    @Test func `a tool call sends its arguments unchanged and its timeouts`() async throws {
        let body = #"{"schema":1,"result":{"content":[],"isError":false}}"#

        try await ScriptedBroker.with(.pieces([ScriptedBroker.json(body)])) { broker, client in
            let arguments: JSONObject = ["b": 1, "a": [true]]
            let result = try await client.tools.call("tap", of: id, arguments: arguments, wait: 3, maxPixels: 0)

            #expect(result == ["content": [], "isError": false])
            let sent = #"{"tool":"tap","arguments":{"b":1,"a":[true]},"waitSeconds":3,"maxPixels":0}"#
            #expect(broker.requests.first?.hasSuffix("\r\n\r\n\(sent)") == true)
        }
    }

    @Test func `a response without a result is invalid`() async throws {
        try await ScriptedBroker.with(.pieces([ScriptedBroker.json("[]")])) { _, client in
            await #expect(throws: ClientError.self) { try await client.tools.call("tap", of: id, arguments: [:]) }
        }
    }
}
