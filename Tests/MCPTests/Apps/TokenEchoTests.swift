import JSON
import Model
import TestSupport
import Synchronization
import Testing

@testable import MCP

/// What an app says with its own token in it.
@Suite struct TokenEchoTests {
    private static let token = "0123456789abcdef/0123456789abcdef"
    private static let mark = "[token removed]"

    private func called(_ reply: @escaping @Sendable (JSON) -> ScriptedApp.Reply) async throws -> JSONObject {
        let app = ScriptedApp.appReveal(reply)
        app.set(token: Self.token)
        let rig = DeskRig(app)
        let shop = try #require(await rig.appear())
        try rig.trust.set(secret: Self.token, of: shop.id)
        return await rig.call(ToolCall("tap", of: shop), of: rig.owner)
    }

    @Test func `a result has no token in it, wherever the app put it`() async throws {
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

    @Test(arguments: [
        ScriptedApp.Reply.error(-32_000, "no \(TokenEchoTests.token) here"),
        .http(500, [], "no \(TokenEchoTests.token) here"),
        .http(200, [], "no \(TokenEchoTests.token) here"),
        .http(500, [], String(repeating: "x", count: 180) + TokenEchoTests.token),
    ])
    func `an error has no token in it`(reply: ScriptedApp.Reply) async throws {
        let result = try await called { _ in reply }

        let text = JSON.object(result).text
        #expect(result["isError"] == true)
        #expect(!text.contains("0123456789abcdef"), "\(text)")
    }

    @Test func `a notification and a message on a stream have no token in them`() async throws {
        let message: JSON = [
            "jsonrpc": "2.0", "method": "notifications/message",
            "params": ["level": "info", "data": ["said": .string("it is \(Self.token)")]],
        ]
        let app = ScriptedApp.appReveal { _ in .stream([message], then: ["content": []]) }
        app.set(token: Self.token)
        let rig = DeskRig(app)
        let shop = try #require(await rig.appear())
        try rig.trust.set(secret: Self.token, of: shop.id)
        let heard = Mutex<[RPCNotification]>([])

        _ = await rig.call(
            ToolCall("tap", of: shop) { notification in heard.withLock { $0.append(notification) } },
            of: rig.owner
        )

        #expect(
            heard.withLock { $0.map(\.params) } == [["level": "info", "data": ["said": .string("it is \(Self.mark)")]]]
        )
    }

    @Test func `a server in lines has its token removed, too`() async throws {
        let app = ScriptedLines.legacy { _ in
            .lines([
                #"{"jsonrpc":"2.0","id":ID,"result":{"content":[{"type":"text","text":"it is \#(Self.token)"}]}}"#
            ])
        }
        let rig = DeskRig(app)
        let shop = try #require(await rig.appear(kind: .mcp, source: .bonjour))
        try rig.trust.set(secret: Self.token, of: shop.id)

        let result = await rig.call(ToolCall("tap", of: shop), of: rig.owner)

        #expect(result["content"] == [["type": "text", "text": .string("it is \(Self.mark)")]])
    }

    @Test func `a list that is kept has no token in it`() async throws {
        let plain = ScriptedApp.appReveal()
        let app = ScriptedApp { request in
            request.method == "tools/list"
                ? .result(["tools": [["name": "tap", "description": .string("with \(Self.token)")]]])
                : plain.reply(to: request)
        }
        let rig = DeskRig(app)
        let shop = try #require(await rig.appear())
        try rig.trust.set(secret: Self.token, of: shop.id)

        let tools = try await rig.desk.tools(of: shop, for: rig.owner).tools

        #expect(tools.first?["description"] == .string("with \(Self.mark)"))
    }
}
