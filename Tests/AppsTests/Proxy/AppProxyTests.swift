import AccessControl
import Model
import Registry
import Samples
import Synchronization
import TestSupport
import Testing

@testable import Apps

@Suite struct AppProxyTests {
    private static func text(_ result: JSONObject) -> String { result["content"]?.array?.first?["text"]?.string ?? "" }
    private static func says(_ text: String) -> ScriptedApp.Reply {
        .result(["content": [["type": "text", "text": .string(text)]]])
    }

    @Test func `a call is sent in the app's protocol version with Patchbay's headers only`() async throws {
        let app = ScriptedApp.appReveal { Self.says("did \($0["name"]?.string ?? "")") }
        let fixture = AppProxyFixture(app)
        let shop = try #require(await fixture.appear())

        let result = await fixture.call(ToolCall("tap", of: shop, arguments: ["x": 1]), of: fixture.owner)

        #expect(Self.text(result) == "did tap")
        #expect(
            app.requests.map(\.method) == ["server/discover", "initialize", "notifications/initialized", "tools/call"]
        )
        let call = try #require(app.calls.first)
        #expect(call.body["params"] == ["name": "tap", "arguments": ["x": 1]])
        #expect(call.header("MCP-Protocol-Version") == "2025-06-18")
        #expect(call.header("Host") == "127.0.0.1:5000")
        let names = call.head.split(separator: "\r\n").dropFirst().map { $0.prefix { $0 != ":" } }
        #expect(
            names.sorted() == [
                "Accept", "Content-Length", "Content-Type", "Host", "MCP-Protocol-Version", "User-Agent",
            ]
        )
        _ = await fixture.call(ToolCall("tap", of: shop), of: fixture.owner)
        #expect(app.requests.count == 5)
        #expect(fixture.authorizer.events.map(\.outcome) == ["answered", "answered"])
        #expect(fixture.authorizer.events.map(\.subject.text) == ["tap", "tap"])
    }

    @Test func `an offline app is waited for and gets the call once at its new address`() async throws {
        let app = ScriptedApp.appReveal()
        let fixture = AppProxyFixture(app)
        let shop = try #require(await fixture.appear())
        try await fixture.run {
            await fixture.disappear()
            let call = ToolCall("tap", of: shop)

            async let result = fixture.call(call, of: fixture.owner)
            await Task.yield()
            await fixture.appear(port: 6_000)

            #expect(await result["isError"] == nil)
            #expect(app.calls.count == 1)
            #expect(app.dials.last?.port == 6_000)
        }
    }

    @Test func `an app that refuses connections is retried until it accepts one`() async throws {
        let app = ScriptedApp.appReveal()
        let fixture = AppProxyFixture(app)
        let shop = try #require(await fixture.appear())
        app.set(isUp: false)

        async let result = fixture.call(ToolCall("tap", of: shop), of: fixture.owner)
        try await eventually("the app is dialled") { app.dials.count >= 2 }
        app.set(isUp: true)

        #expect(await result["isError"] == nil)
        #expect(app.calls.count == 1)
    }

    @Test func `an unreachable app is dialled at most four times a second`() async throws {
        let app = ScriptedApp.appReveal()
        let fixture = AppProxyFixture(app)
        let shop = try #require(await fixture.appear())
        app.set(isUp: false)

        let result = await fixture.call(ToolCall("tap", of: shop, wait: .seconds(1)), of: fixture.owner)

        #expect(result["_meta"] == ["patchbay/failure": "unavailable"])
        #expect((3...6).contains(app.dials.count))
    }

    @Test func `a call to an offline app returns an error result with a hint`() async throws {
        let fixture = AppProxyFixture(ScriptedApp.appReveal())
        let shop = try #require(await fixture.appear())
        await fixture.disappear()

        let result = await fixture.call(ToolCall("tap", of: shop, wait: .milliseconds(50)), of: fixture.owner)

        #expect(result["isError"] == true)
        #expect(result["_meta"] == ["patchbay/failure": "unavailable"])
        #expect(Self.text(result).contains("start the app"))
        #expect(fixture.authorizer.events.map(\.outcome) == ["unavailable"])
    }

    @Test func `a call with a lost response is not sent again`() async throws {
        let app = ScriptedApp.appReveal { _ in .drop }
        let fixture = AppProxyFixture(app)
        let shop = try #require(await fixture.appear())

        let result = await fixture.call(ToolCall("tap", of: shop), of: fixture.owner)

        #expect(result["_meta"] == ["patchbay/failure": "response-lost"])
        #expect(Self.text(result).hasPrefix("delivered, result unknown"))
        #expect(app.calls.count == 1)
    }

    @Test func `a read-only call with a lost response is sent again`() async throws {
        let count = Mutex(0)
        let app = ScriptedApp.appReveal { _ in
            count.withLock {
                $0 += 1; return $0
            } == 1 ? .drop : Self.says("screen")
        }
        let fixture = AppProxyFixture(app)
        let shop = try #require(await fixture.appear())
        _ = try await fixture.proxy.tools(of: shop, for: fixture.owner)

        let result = await fixture.call(ToolCall("get_screen", of: shop), of: fixture.owner)

        #expect(Self.text(result) == "screen")
        #expect(app.calls.count == 2)
    }

    @Test func `a rejected token is reported at once, and the next call uses the new token`() async throws {
        let app = ScriptedApp.appReveal()
        let fixture = AppProxyFixture(app)
        let shop = try #require(await fixture.appear())
        try fixture.authorizer.set(secret: "old", of: shop.id)
        app.set(token: "new")
        try await fixture.run {
            let refused = await fixture.call(ToolCall("tap", of: shop), of: fixture.owner)
            #expect(refused["isError"] == true && Self.text(refused).contains("session token"))
            try fixture.authorizer.set(secret: "new", of: shop.id)

            let result = await fixture.call(ToolCall("tap", of: shop), of: fixture.owner)
            #expect(result["isError"] == nil)
            #expect(app.calls.map { $0.header("Authorization") } == ["Bearer new"])
            #expect(fixture.authorizer.tokenResults.first == false && fixture.authorizer.tokenResults.last == true)
        }
    }

    @Test func `a token can be tested before it is stored`() async throws {
        let app = ScriptedApp.appReveal()
        app.set(token: "right")
        let fixture = AppProxyFixture(app)
        let shop = try #require(await fixture.appear())

        #expect(await fixture.proxy.accepts(try EndpointSecret("wrong"), at: shop, for: fixture.owner) == false)
        #expect(await fixture.proxy.accepts(try EndpointSecret("right"), at: shop, for: fixture.owner) == true)
        app.set(isUp: false)
        #expect(await fixture.proxy.accepts(try EndpointSecret("wrong"), at: shop, for: fixture.owner) == nil)
    }

    @Test func `an app that answers 401 requires a token for that launch`() async throws {
        let app = ScriptedApp.appReveal()
        app.set(token: "right")
        let fixture = AppProxyFixture(app)
        let shop = try #require(await fixture.appear())
        #expect(!fixture.proxy.wantsSecret(shop))

        _ = await fixture.call(ToolCall("tap", of: shop), of: fixture.owner)
        #expect(fixture.proxy.wantsSecret(shop))
        #expect(await fixture.proxy.isOpen(shop, for: fixture.owner) == false)
        let next = try #require(await fixture.appear(port: 5_001))
        #expect(!fixture.proxy.wantsSecret(next))
        #expect(await fixture.proxy.isOpen(next, for: fixture.owner) == false && fixture.proxy.wantsSecret(next))

        let last = try #require(await fixture.appear(port: 5_002))
        try fixture.authorizer.set(secret: "right", of: shop.id)
        #expect(await fixture.proxy.isOpen(last, for: fixture.owner) == true)
        app.set(isUp: false)
        #expect(await fixture.proxy.isOpen(last, for: fixture.owner) == nil)
    }

    @Test func `the caller's timeout limits the silence of an app`() async throws {
        let app = ScriptedApp.appReveal { _ in .silence }
        let fixture = AppProxyFixture(app)
        let shop = try #require(await fixture.appear())

        let start = ContinuousClock.now
        let result = await fixture.call(ToolCall("tap", of: shop, timeout: .milliseconds(100)), of: fixture.owner)

        #expect(result["_meta"] == ["patchbay/failure": "timeout"])
        #expect(ContinuousClock.now - start < .seconds(10))
    }

    @Test func `a call to an app without a stored token fails without waiting`() async throws {
        let app = ScriptedApp.appReveal()
        app.set(token: "secret")
        let fixture = AppProxyFixture(app)
        let shop = try #require(await fixture.appear())

        let result = await fixture.call(ToolCall("tap", of: shop), of: fixture.owner)

        #expect(result["_meta"] == ["patchbay/failure": "token-required"])
        #expect(Self.text(result).contains("patchbay secret set"))
    }

    @Test func `a grant without a required scope is rejected, and the error names the scope`()
        async throws
    {
        let app = ScriptedApp.appReveal()
        app.set(token: "secret")
        let fixture = AppProxyFixture(app)
        let shop = try #require(await fixture.appear())
        try fixture.authorizer.set(secret: "secret", of: shop.id)
        func principal(_ scopes: Set<Scope>) -> Principal { .holder(of: "x", scopes) }

        let reader = await fixture.call(ToolCall("tap", of: shop), of: principal([.registryRead]))
        #expect(reader["_meta"] == ["patchbay/failure": "not-permitted"])
        #expect(app.dials.isEmpty)

        let caller1 = await fixture.call(ToolCall("tap", of: shop), of: principal([.endpointCall]))
        #expect(Self.text(caller1).contains("secret.use"))
        #expect(app.requests.allSatisfy { $0.header("Authorization") == nil })

        let caller2 = await fixture.call(ToolCall("tap", of: shop), of: principal([.endpointCall, .secretUse]))
        #expect(caller2["isError"] == nil)
    }

    @Test func `an endpoint without approval is not dialled`() async throws {
        let app = ScriptedApp.appReveal()
        let fixture = AppProxyFixture(app)
        let shop = try #require(await fixture.appear())
        fixture.authorizer.rejectAll()

        let result = await fixture.call(ToolCall("tap", of: shop), of: fixture.owner)

        #expect(result["_meta"] == ["patchbay/failure": "not-approved"])
        #expect(app.dials.isEmpty)
    }

    @Test(arguments: [
        (ScriptedApp.Reply.http(302, ["Location: http://169.254.169.254/"], ""), "redirect"),
        (.http(200, [], "{"), "JSON"),
        (.http(200, [], #"{"jsonrpc":"2.0","id":1,"result":[]}"#), "answer"),
        (.http(500, [], "oops"), "status 500"),
    ])
    func `an invalid response is described, and a redirect is not followed`(reply: ScriptedApp.Reply, word: String)
        async throws
    {
        let app = ScriptedApp.appReveal { _ in reply }
        let fixture = AppProxyFixture(app)
        let shop = try #require(await fixture.appear())

        let result = await fixture.call(ToolCall("tap", of: shop), of: fixture.owner)

        #expect(result["_meta"] == ["patchbay/failure": "invalid-response"])
        #expect(Self.text(result).contains(word))
        #expect(app.calls.count == 1)
    }

    @Test func `a call is not delivered to an app that is silent in the handshake`() async throws {
        let app = ScriptedApp { _ in .silence }
        let fixture = AppProxyFixture(app)
        let shop = try #require(await fixture.appear())

        let result = await fixture.call(ToolCall("tap", of: shop), of: fixture.owner)

        #expect(result["_meta"] == ["patchbay/failure": "no-handshake"])
        #expect(Self.text(result).contains("completed no MCP handshake within 5 s"))
        #expect(app.calls.isEmpty)
    }

    @Test func `a call to a silent app times out and is cancelled at the app`() async throws {
        let app = ScriptedApp.appReveal { _ in .silence }
        let fixture = AppProxyFixture(app) { $0.response.idle = .milliseconds(100) }
        let shop = try #require(await fixture.appear())
        try await fixture.run {
            let result = await fixture.call(ToolCall("tap", of: shop), of: fixture.owner)

            #expect(result["_meta"] == ["patchbay/failure": "timeout"])
            let id = try #require(app.calls.first?.body["id"])
            try await eventually("the call is cancelled") { app.requests.last?.method == "notifications/cancelled" }
            #expect(app.requests.last?.body["params"]?["requestId"] == id)
        }
    }

    @Test func `a cancelled call is cancelled at the app`() async throws {
        let app = ScriptedApp.appReveal { _ in .silence }
        let fixture = AppProxyFixture(app)
        let shop = try #require(await fixture.appear())
        try await fixture.run {
            let call = Task { await fixture.call(ToolCall("tap", of: shop), of: fixture.owner) }
            try await eventually("the call has arrived") { !app.calls.isEmpty }
            call.cancel()
            _ = await call.value

            try await eventually("the call is cancelled") { app.requests.last?.method == "notifications/cancelled" }
            #expect(fixture.authorizer.events.map(\.outcome) == ["cancelled"])
        }
    }

    @Test func `four calls per holder run at once, and calls over the queue limit are rejected`() async throws {
        let app = ScriptedApp.appReveal { _ in .silence }
        let fixture = AppProxyFixture(app) { $0.response.idle = .milliseconds(300) }
        let shop = try #require(await fixture.appear())

        let codes = await withTaskGroup(of: JSON?.self) { group in
            for _ in 0..<80 {
                group.addTask {
                    await fixture.call(ToolCall("tap", of: shop), of: fixture.owner)["_meta"]?["patchbay/failure"]
                }
            }
            try? await eventually("four calls have arrived") { app.calls.count == 4 }
            #expect(app.calls.count == 4)
            group.cancelAll()
            var codes: [JSON?] = []
            for await code in group { codes.append(code) }
            return codes
        }

        #expect(codes.count { $0 == "busy" } == 12)
    }

    @Test func `the calls of one holder do not block another holder`() async throws {
        let app = ScriptedApp.appReveal { $0["name"] == "slow" ? .silence : .result(["content": []]) }
        let fixture = AppProxyFixture(app)
        let shop = try #require(await fixture.appear())
        let other = Principal.holder(of: "other", [.endpointCall])

        try await withThrowingTaskGroup(of: Void.self) { group in
            for _ in 0..<80 { group.addTask { _ = await fixture.call(ToolCall("slow", of: shop), of: fixture.owner) } }
            try await eventually("four calls have arrived") { app.calls.count == 4 }

            let result = await fixture.call(ToolCall("tap", of: shop), of: other)

            #expect(result["isError"] == nil)
            #expect(app.calls.count == 5)
            group.cancelAll()
        }
    }
}
