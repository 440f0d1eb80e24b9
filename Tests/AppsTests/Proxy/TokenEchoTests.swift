import AccessControl
import Model
import Synchronization
import TestSupport
import Testing

@testable import Apps

/// Messages in which an app repeats its session token.
@Suite struct TokenEchoTests {
    private static let token = "0123456789abcdef/0123456789abcdef"
    private static let mark = "[token removed]"

    private func called(_ reply: @escaping @Sendable (JSON) -> ScriptedApp.Reply) async throws -> JSONObject {
        let app = ScriptedApp.appReveal(reply)
        app.set(token: Self.token)
        let fixture = AppProxyFixture(app)
        let shop = try #require(await fixture.appear())
        try fixture.authorizer.set(secret: Self.token, of: shop.id)
        return await fixture.call(ToolCall("tap", of: shop), of: fixture.owner)
    }

    @Test func `a token is removed from every part of a result`() async throws {
        let echo = "http://x/?t=\(Self.token)&again=\(Self.token)"
        let result = try await called { _ in
            .result([
                "content": [["type": "text", "text": .string(echo)], ["type": "text", "text": "plain"]],
                "structuredContent": ["url": .string(echo), "list": [.string(Self.token), 1]],
                "_meta": .object(["a \(Self.token)": true]),
            ])
        }

        let clean = "http://x/?t=\(Self.mark)&again=\(Self.mark)"
        #expect(result["content"] == [["type": "text", "text": .string(clean)], ["type": "text", "text": "plain"]])
        #expect(result["structuredContent"] == ["url": .string(clean), "list": [.string(Self.mark), 1]])
        #expect(result["_meta"] == .object(["a \(Self.mark)": true]))
    }

    @Test func `a note on a damaged result has no part of a token, wherever the text is cut`() async throws {
        let name = String(repeating: "n", count: 440)
        let result = #"{"content":[],"structuredContent":{"\#(name)\#(Self.token)":NaN}}"#
        let message = #"{"jsonrpc":"2.0","id":1,"result":\#(result)}"#
        let route = Route.network(NetworkRoute(address: "127.0.0.1", port: 1))
        let secret = try EndpointSecret(Self.token)
        let redactor = TokenRedactor([AuthorizedRoute(route, secret: secret)])

        let messages = try await ServerMessageDecoder(redactor: redactor) { _ in }.messages(
            in: Array(message.utf8)[...]
        )

        let text = messages.map(\.json.text).joined()
        #expect(text.contains("is damaged") && !text.contains(Self.token.prefix(8)))
    }

    @Test(arguments: [
        ScriptedApp.Reply.error(-32_000, "no \(TokenEchoTests.token) here"),
        .http(500, [], "no \(TokenEchoTests.token) here"),
        .http(200, [], "no \(TokenEchoTests.token) here"),
        .http(500, [], String(repeating: "x", count: 180) + TokenEchoTests.token),
    ])
    func `a token is removed from an error`(reply: ScriptedApp.Reply) async throws {
        let result = try await called { _ in reply }

        let text = JSON.object(result).text
        #expect(result["isError"] == true)
        #expect(!text.contains("0123456789abcdef"), "\(text)")
    }

    @Test func `a token is removed from notifications`() async throws {
        let message: JSON = [
            "jsonrpc": "2.0", "method": "notifications/message",
            "params": ["level": "info", "data": ["said": .string("it is \(Self.token)")]],
        ]
        let app = ScriptedApp.appReveal { _ in .stream([message], then: ["content": []]) }
        app.set(token: Self.token)
        let fixture = AppProxyFixture(app)
        let shop = try #require(await fixture.appear())
        try fixture.authorizer.set(secret: Self.token, of: shop.id)
        let received = Mutex<[RPCNotification]>([])

        _ = await fixture.call(
            ToolCall("tap", of: shop) { notification in received.withLock { $0.append(notification) } },
            of: fixture.owner
        )

        #expect(
            received.withLock { $0.map(\.params) } == [
                ["level": "info", "data": ["said": .string("it is \(Self.mark)")]]
            ]
        )
    }

    @Test func `a token is removed from the messages of a line-based server`() async throws {
        let app = ScriptedLines.legacy { _ in
            .lines([#"{"jsonrpc":"2.0","id":ID,"result":{"content":[{"type":"text","text":"it is \#(Self.token)"}]}}"#])
        }
        let fixture = AppProxyFixture(app)
        let shop = try #require(await fixture.appear(kind: .mcp, source: .bonjour))
        try fixture.authorizer.set(secret: Self.token, of: shop.id)

        let result = await fixture.call(ToolCall("tap", of: shop), of: fixture.owner)

        #expect(result["content"] == [["type": "text", "text": .string("it is \(Self.mark)")]])
    }

    @Test func `a token is removed from a list`() async throws {
        let plain = ScriptedApp.appReveal()
        let app = ScriptedApp { request in
            request.method == "tools/list"
                ? .result(["tools": [["name": "tap", "description": .string("with \(Self.token)")]]])
                : plain.reply(to: request)
        }
        let fixture = AppProxyFixture(app)
        let shop = try #require(await fixture.appear())
        try fixture.authorizer.set(secret: Self.token, of: shop.id)

        let tools = try await fixture.proxy.tools(of: shop, for: fixture.owner).tools

        #expect(tools.first?["description"] == .string("with \(Self.mark)"))
    }
}
