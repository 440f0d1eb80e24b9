import JSON
import Model
import AccessControl
import TestSupport
import Synchronization
import Testing

@testable import MCP

/// How often a call reaches its app, and how long it may take.
@Suite struct DeliveryTests {
    private static func code(_ result: JSONObject) -> JSON? { result["_meta"]?["patchbay/failure"] }

    private static func refusal(_ code: Int, _ message: String) -> ScriptedApp.Reply {
        .http(400, [], #"{"jsonrpc":"2.0","id":null,"error":{"code":\#(code),"message":"\#(message)"}}"#)
    }

    @Test(arguments: ["no session", "_meta is wrong", "the protocol"])
    func `an error that only mentions a session does not send a call again`(words: String) async throws {
        let app = ScriptedApp.appReveal { _ in Self.refusal(-32_600, words) }
        let rig = DeskRig(app)
        let shop = try #require(await rig.appear())

        let result = await rig.call(ToolCall("tap", of: shop), of: rig.owner)

        #expect(result["isError"] == true)
        #expect(app.calls.count == 1)
        // The next call asks the server anew what it speaks.
        _ = await rig.call(ToolCall("tap", of: shop), of: rig.owner)
        #expect(app.calls.count == 2)
        #expect(app.requests.count { $0.method == "initialize" } == 2)
    }

    @Test(arguments: [-32_020, -32_022])
    func `a call that the protocol says was not processed is sent again`(code: Int) async throws {
        let count = Mutex(0)
        let app = ScriptedApp.appReveal { _ in
            let number = count.withLock {
                $0 += 1
                return $0
            }
            return number == 1 ? Self.refusal(code, "other headers") : .result(["content": []])
        }
        let rig = DeskRig(app)
        let shop = try #require(await rig.appear())

        let result = await rig.call(ToolCall("tap", of: shop), of: rig.owner)

        #expect(result["isError"] == nil)
        #expect(app.calls.count == 2)
    }

    @Test func `a list is asked for again where an error mentions a session`() async throws {
        let count = Mutex(0)
        let plain = ScriptedApp.appReveal()
        let app = ScriptedApp { request in
            let isFirst =
                request.method == "tools/list"
                && count.withLock {
                    $0 += 1; return $0 == 1
                }
            return isFirst ? Self.refusal(-32_600, "Missing session ID") : plain.reply(to: request)
        }
        let rig = DeskRig(app)
        let shop = try #require(await rig.appear())

        #expect(try await rig.desk.tools(of: shop, for: rig.owner).tools.count == 2)
    }

    @Test func `the audit log has both deliveries of a call that was repeated`() async throws {
        let count = Mutex(0)
        let app = ScriptedApp.appReveal { _ in
            count.withLock {
                $0 += 1; return $0 == 1
            } ? .drop : .result(["content": []])
        }
        let rig = DeskRig(app)
        let shop = try #require(await rig.appear())
        _ = try await rig.desk.tools(of: shop, for: rig.owner)

        _ = await rig.call(ToolCall("get_screen", of: shop), of: rig.owner)

        #expect(app.calls.count == 2)
        #expect(rig.trust.uses.map(\.outcome) == ["lost, sent again", "answered"])
        #expect(rig.trust.uses.map(\.subject.text) == ["get_screen", "get_screen"])
    }

    @Test func `an answer that comes byte by byte takes no longer than the caller allows`() async throws {
        let app = ScriptedApp.appReveal { _ in .trickle }
        let rig = DeskRig(app)
        let shop = try #require(await rig.appear())

        let start = ContinuousClock.now
        let result = await rig.call(ToolCall("tap", of: shop, patience: .milliseconds(300)), of: rig.owner)

        #expect(Self.code(result) == "too-slow")
        #expect(ContinuousClock.now - start < .seconds(3))
    }

    @Test func `the time that a caller allows includes the time in the queue`() async throws {
        let app = ScriptedApp.appReveal { _ in .silence }
        let rig = DeskRig(app)
        let shop = try #require(await rig.appear())

        try await withThrowingTaskGroup(of: Void.self) { group in
            for _ in 0..<4 {
                group.addTask { _ = await rig.call(ToolCall("tap", of: shop, patience: .seconds(60)), of: rig.owner) }
            }
            try await eventually("four are there") { app.calls.count == 4 }

            let start = ContinuousClock.now
            let result = await rig.call(ToolCall("tap", of: shop, patience: .milliseconds(300)), of: rig.owner)

            #expect(Self.code(result) == "busy")
            #expect(ContinuousClock.now - start < .seconds(3))
            #expect(app.calls.count == 4)
            group.cancelAll()
        }
    }

    @Test func `the time that a caller allows includes the wait for an app that is away`() async throws {
        let rig = DeskRig(ScriptedApp.appReveal())
        let shop = try #require(await rig.appear())
        await rig.disappear()

        let start = ContinuousClock.now
        let result = await rig.call(
            ToolCall("tap", of: shop, wait: .seconds(30), patience: .milliseconds(300)),
            of: rig.owner
        )

        #expect(Self.code(result) == "away")
        #expect(ContinuousClock.now - start < .seconds(3))
    }

    @Test func `the time that a caller allows includes finding out what the app speaks`() async throws {
        let app = ScriptedApp { _ in .trickle }
        let rig = DeskRig(app)
        let shop = try #require(await rig.appear())

        let start = ContinuousClock.now
        let result = await rig.call(ToolCall("tap", of: shop, patience: .milliseconds(300)), of: rig.owner)

        #expect(Self.code(result) == "mute")
        #expect(ContinuousClock.now - start < .seconds(3))
    }
}
