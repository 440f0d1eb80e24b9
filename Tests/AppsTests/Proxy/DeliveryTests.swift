import AccessControl
import Model
import Synchronization
import TestSupport
import Testing

@testable import Apps

/// The number of deliveries of a call, and its time limits.
@Suite struct DeliveryTests {
    private static func code(_ result: JSONObject) -> JSON? { result["_meta"]?["patchbay/failure"] }

    private static func refusal(_ code: Int, _ message: String) -> ScriptedApp.Reply {
        .http(400, [], #"{"jsonrpc":"2.0","id":null,"error":{"code":\#(code),"message":"\#(message)"}}"#)
    }

    @Test(arguments: ["no session", "_meta is wrong", "the protocol"])
    func `a call is not repeated after an error that only mentions a session`(words: String) async throws {
        let app = ScriptedApp.appReveal { _ in Self.refusal(-32_600, words) }
        let fixture = AppProxyFixture(app)
        let shop = try #require(await fixture.appear())

        let result = await fixture.call(ToolCall("tap", of: shop), of: fixture.owner)

        #expect(result["isError"] == true)
        #expect(app.calls.count == 1)
        // The next call performs a new handshake.
        _ = await fixture.call(ToolCall("tap", of: shop), of: fixture.owner)
        #expect(app.calls.count == 2)
        #expect(app.requests.count { $0.method == "initialize" } == 2)
    }

    @Test(arguments: [-32_020, -32_022])
    func `a call that was not processed according to the protocol is repeated`(code: Int) async throws {
        let count = Mutex(0)
        let app = ScriptedApp.appReveal { _ in
            let number = count.withLock {
                $0 += 1
                return $0
            }
            return number == 1 ? Self.refusal(code, "other headers") : .result(["content": []])
        }
        let fixture = AppProxyFixture(app)
        let shop = try #require(await fixture.appear())

        let result = await fixture.call(ToolCall("tap", of: shop), of: fixture.owner)

        #expect(result["isError"] == nil)
        #expect(app.calls.count == 2)
    }

    @Test func `a list request is repeated after an error that mentions a session`() async throws {
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
        let fixture = AppProxyFixture(app)
        let shop = try #require(await fixture.appear())

        #expect(try await fixture.proxy.tools(of: shop, for: fixture.owner).tools.count == 2)
    }

    @Test func `the audit log has both deliveries of a repeated call`() async throws {
        let count = Mutex(0)
        let app = ScriptedApp.appReveal { _ in
            count.withLock {
                $0 += 1; return $0 == 1
            } ? .drop : .result(["content": []])
        }
        let fixture = AppProxyFixture(app)
        let shop = try #require(await fixture.appear())
        _ = try await fixture.proxy.tools(of: shop, for: fixture.owner)

        _ = await fixture.call(ToolCall("get_screen", of: shop), of: fixture.owner)

        #expect(app.calls.count == 2)
        #expect(fixture.authorizer.events.map(\.outcome) == ["lost, sent again", "answered"])
        #expect(fixture.authorizer.events.map(\.subject.text) == ["get_screen", "get_screen"])
    }

    @Test func `a response that arrives byte by byte is limited by the caller's timeout`() async throws {
        let app = ScriptedApp.appReveal { _ in .trickle }
        let fixture = AppProxyFixture(app)
        let shop = try #require(await fixture.appear())

        let start = ContinuousClock.now
        let result = await fixture.call(ToolCall("tap", of: shop, timeout: .milliseconds(300)), of: fixture.owner)

        #expect(Self.code(result) == "timeout")
        #expect(ContinuousClock.now - start < .seconds(3))
    }

    @Test func `the caller's timeout includes the time in the queue`() async throws {
        let app = ScriptedApp.appReveal { _ in .silence }
        let fixture = AppProxyFixture(app)
        let shop = try #require(await fixture.appear())

        try await withThrowingTaskGroup(of: Void.self) { group in
            for _ in 0..<4 {
                group.addTask {
                    _ = await fixture.call(ToolCall("tap", of: shop, timeout: .seconds(60)), of: fixture.owner)
                }
            }
            try await eventually("four calls have arrived") { app.calls.count == 4 }

            let start = ContinuousClock.now
            let result = await fixture.call(ToolCall("tap", of: shop, timeout: .milliseconds(300)), of: fixture.owner)

            #expect(Self.code(result) == "busy")
            #expect(ContinuousClock.now - start < .seconds(3))
            #expect(app.calls.count == 4)
            group.cancelAll()
        }
    }

    @Test func `the caller's timeout includes the wait for an offline app`() async throws {
        let fixture = AppProxyFixture(ScriptedApp.appReveal())
        let shop = try #require(await fixture.appear())
        await fixture.disappear()

        let start = ContinuousClock.now
        let result = await fixture.call(
            ToolCall("tap", of: shop, wait: .seconds(30), timeout: .milliseconds(300)),
            of: fixture.owner
        )

        #expect(Self.code(result) == "unavailable")
        #expect(ContinuousClock.now - start < .seconds(3))
    }

    @Test(arguments: [ScriptedApp { _ in .trickle }, ScriptedApp.appReveal { _ in .silence }])
    func `the end of the caller's timeout is reported with that timeout`(app: ScriptedApp) async throws {
        let fixture = AppProxyFixture(app)
        let shop = try #require(await fixture.appear())

        let call = ToolCall("tap", of: shop, timeout: .milliseconds(600))
        let result = await fixture.call(call, of: fixture.owner)

        let text = result["content"]?.array?.first?["text"]?.string
        #expect(text?.contains("within 1 s") == true, "rounded to seconds: \(text ?? "")")
    }

    @Test func `the caller's timeout includes the handshake`() async throws {
        let app = ScriptedApp { _ in .trickle }
        let fixture = AppProxyFixture(app)
        let shop = try #require(await fixture.appear())

        let start = ContinuousClock.now
        let result = await fixture.call(ToolCall("tap", of: shop, timeout: .milliseconds(300)), of: fixture.owner)

        #expect(Self.code(result) == "no-handshake")
        #expect(ContinuousClock.now - start < .seconds(3))
    }
}
