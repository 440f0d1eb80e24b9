import JSON
import SystemIO
import Testing

@testable import MCP

@Suite struct ResourceSubscriptionsTests {
    private let subscriptions = ResourceSubscriptions()
    private let stateless: ServerInfo
    private let session: ServerInfo

    init() throws {
        stateless = try #require(ServerInfo(discovery: ["supportedVersions": ["2026-07-28"]], at: .http(path: "/")))
        session = try ServerInfo(handshake: ["protocolVersion": "2025-06-18"], at: .http(path: "/"), sessionID: "s")
    }

    private static func request(_ verb: String, _ uri: String) -> MCPRequest {
        MCPRequest("resources/\(verb)", ["uri": .string(uri)])
    }

    @Test func `a stateless app gets no subscriptions, and its change stream is opened again`() {
        let change = subscriptions.nextChange()

        let response = subscriptions.response(to: Self.request("subscribe", "a://1"), of: stateless)

        #expect(response != nil)
        #expect(change.isCompleted)
        #expect(subscriptions.uris == ["a://1"])
    }

    @Test func `a session-mode app gets the subscription itself, which is recorded after its response`() {
        let request = Self.request("subscribe", "a://1")

        #expect(subscriptions.response(to: request, of: session) == nil)
        #expect(subscriptions.uris.isEmpty)
        subscriptions.record(request)
        #expect(subscriptions.uris == ["a://1"])
    }

    @Test func `a second subscription and an unsubscription open no new stream`() {
        _ = subscriptions.response(to: Self.request("subscribe", "a://1"), of: stateless)
        let change = subscriptions.nextChange()

        _ = subscriptions.response(to: Self.request("subscribe", "a://1"), of: stateless)
        _ = subscriptions.response(to: Self.request("unsubscribe", "a://1"), of: stateless)

        #expect(!change.isCompleted)
        #expect(subscriptions.uris.isEmpty)
    }

    @Test func `the number of resources is limited, and the app decides about further ones`() {
        for number in 1...ResourceSubscriptions.limit {
            _ = subscriptions.response(to: Self.request("subscribe", "a://\(number)"), of: stateless)
        }

        #expect(subscriptions.response(to: Self.request("subscribe", "a://0"), of: stateless) == nil)
        #expect(subscriptions.uris.count == ResourceSubscriptions.limit)
    }
}
