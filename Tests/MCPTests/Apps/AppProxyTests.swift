import JSON
import Model
import AccessControl
import Registry
import TestSupport
import Synchronization
import Testing

@testable import MCP

@Suite struct AppProxyTests {
    private static func text(_ result: JSONObject) -> String { result["content"]?.array?.first?["text"]?.string ?? "" }
    private static func says(_ text: String) -> ScriptedApp.Reply {
        .result(["content": [["type": "text", "text": .string(text)]]])
    }

    @Test func `a call reaches the app in its own era, and only with headers of ours`() async throws {
        let app = ScriptedApp.appReveal { Self.says("did \($0["name"]?.string ?? "")") }
        let rig = DeskRig(app)
        let shop = try #require(await rig.appear())

        let result = await rig.call(ToolCall("tap", of: shop, arguments: ["x": 1]), of: rig.owner)

        #expect(Self.text(result) == "did tap")
        #expect(
            app.requests.map(\.method) == [
                "server/discover", "initialize", "notifications/initialized", "tools/call",
            ]
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
        _ = await rig.call(ToolCall("tap", of: shop), of: rig.owner)
        #expect(app.requests.count == 5)
        #expect(rig.trust.uses.map(\.outcome) == ["answered", "answered"])
        #expect(rig.trust.uses.map(\.subject.text) == ["tap", "tap"])
    }

    @Test func `an app that is away is waited for, and gets the call once, where it is then`() async throws {
        let app = ScriptedApp.appReveal()
        let rig = DeskRig(app)
        let shop = try #require(await rig.appear())
        try await rig.run {
            await rig.disappear()
            let call = ToolCall("tap", of: shop)

            async let result = rig.call(call, of: rig.owner)
            await Task.yield()
            await rig.appear(port: 6_000)

            #expect(await result["isError"] == nil)
            #expect(app.calls.count == 1)
            #expect(app.dials.last?.port == 6_000)
        }
    }

    @Test func `an app that does not listen where it is listed is tried until it does`() async throws {
        let app = ScriptedApp.appReveal()
        let rig = DeskRig(app)
        let shop = try #require(await rig.appear())
        app.set(isUp: false)

        async let result = rig.call(ToolCall("tap", of: shop), of: rig.owner)
        try await eventually("it is dialled") { app.dials.count >= 2 }
        app.set(isUp: true)

        #expect(await result["isError"] == nil)
        #expect(app.calls.count == 1)
    }

    @Test func `while it waits, an app is knocked at four times a second and no oftener`() async throws {
        let app = ScriptedApp.appReveal()
        let rig = DeskRig(app)
        let shop = try #require(await rig.appear())
        app.set(isUp: false)

        let result = await rig.call(ToolCall("tap", of: shop, wait: .seconds(1)), of: rig.owner)

        #expect(result["_meta"] == ["patchbay/failure": "away"])
        #expect((3...6).contains(app.dials.count))
    }

    @Test func `an app that stays away is a result that says so and what to do`() async throws {
        let rig = DeskRig(ScriptedApp.appReveal())
        let shop = try #require(await rig.appear())
        await rig.disappear()

        let result = await rig.call(ToolCall("tap", of: shop, wait: .milliseconds(50)), of: rig.owner)

        #expect(result["isError"] == true)
        #expect(result["_meta"] == ["patchbay/failure": "away"])
        #expect(Self.text(result).contains("start the app"))
        #expect(rig.trust.uses.map(\.outcome) == ["away"])
    }

    @Test func `a call whose answer was lost is not sent again`() async throws {
        let app = ScriptedApp.appReveal { _ in .drop }
        let rig = DeskRig(app)
        let shop = try #require(await rig.appear())

        let result = await rig.call(ToolCall("tap", of: shop), of: rig.owner)

        #expect(result["_meta"] == ["patchbay/failure": "lost-after-delivery"])
        #expect(Self.text(result).hasPrefix("delivered, result unknown"))
        #expect(app.calls.count == 1)
    }

    @Test func `a call that only reads is sent once more`() async throws {
        let count = Mutex(0)
        let app = ScriptedApp.appReveal { _ in
            count.withLock {
                $0 += 1; return $0
            } == 1 ? .drop : Self.says("screen")
        }
        let rig = DeskRig(app)
        let shop = try #require(await rig.appear())
        _ = try await rig.desk.tools(of: shop, for: rig.owner)

        let result = await rig.call(ToolCall("get_screen", of: shop), of: rig.owner)

        #expect(Self.text(result) == "screen")
        #expect(app.calls.count == 2)
    }

    @Test func `a token that is not accepted any more is waited for, and the new one is sent`() async throws {
        let app = ScriptedApp.appReveal()
        let rig = DeskRig(app)
        let shop = try #require(await rig.appear())
        try rig.trust.set(secret: "old", of: shop.id)
        app.set(token: "new")
        try await rig.run {
            async let result = rig.call(ToolCall("tap", of: shop), of: rig.owner)
            try await eventually("it is refused") { !app.requests.isEmpty }
            try rig.trust.set(secret: "new", of: shop.id)

            #expect(await result["isError"] == nil)
            #expect(app.calls.map { $0.header("Authorization") } == ["Bearer new"])
            #expect(rig.trust.taken.first == false && rig.trust.taken.last == true)
        }
    }

    @Test func `a token can be tried before it is kept`() async throws {
        let app = ScriptedApp.appReveal()
        app.set(token: "right")
        let rig = DeskRig(app)
        let shop = try #require(await rig.appear())

        #expect(await rig.desk.takes(try EndpointSecret("wrong"), at: shop, for: rig.owner) == false)
        #expect(await rig.desk.takes(try EndpointSecret("right"), at: shop, for: rig.owner) == true)
        app.set(isUp: false)
        #expect(await rig.desk.takes(try EndpointSecret("wrong"), at: shop, for: rig.owner) == nil)
    }

    @Test func `whether an app wants a token is learnt from its answers, for the launch that gave them`() async throws {
        let app = ScriptedApp.appReveal()
        app.set(token: "right")
        let rig = DeskRig(app)
        let shop = try #require(await rig.appear())
        #expect(!rig.desk.wantsSecret(shop))

        _ = await rig.call(ToolCall("tap", of: shop), of: rig.owner)
        #expect(rig.desk.wantsSecret(shop))
        #expect(await rig.desk.isOpen(shop, for: rig.owner) == false)
        let next = try #require(await rig.appear(port: 5_001))
        #expect(!rig.desk.wantsSecret(next))
        #expect(await rig.desk.isOpen(next, for: rig.owner) == false && rig.desk.wantsSecret(next))

        let last = try #require(await rig.appear(port: 5_002))
        try rig.trust.set(secret: "right", of: shop.id)
        #expect(await rig.desk.isOpen(last, for: rig.owner) == true)
        app.set(isUp: false)
        #expect(await rig.desk.isOpen(last, for: rig.owner) == nil)
    }

    @Test func `an app may be silent for as long as the caller says`() async throws {
        let app = ScriptedApp.appReveal { _ in .silence }
        let rig = DeskRig(app)
        let shop = try #require(await rig.appear())

        let start = ContinuousClock.now
        let result = await rig.call(ToolCall("tap", of: shop, patience: .milliseconds(100)), of: rig.owner)

        #expect(result["_meta"] == ["patchbay/failure": "too-slow"])
        #expect(ContinuousClock.now - start < .seconds(10))
    }

    @Test func `an app that wants a token that nobody has is no reason to wait`() async throws {
        let app = ScriptedApp.appReveal()
        app.set(token: "secret")
        let rig = DeskRig(app)
        let shop = try #require(await rig.appear())

        let result = await rig.call(ToolCall("tap", of: shop), of: rig.owner)

        #expect(result["_meta"] == ["patchbay/failure": "needs-secret"])
        #expect(Self.text(result).contains("patchbay secret set"))
    }

    @Test func `a grant without the scope reaches nothing, and one that may not have the token shown is told so`()
        async throws
    {
        let app = ScriptedApp.appReveal()
        app.set(token: "secret")
        let rig = DeskRig(app)
        let shop = try #require(await rig.appear())
        try rig.trust.set(secret: "secret", of: shop.id)
        func caller(_ scopes: Set<Scope>) -> AgentCaller {
            AgentCaller(.grant("x"), permissions: Permissions(scopes, on: .all))
        }

        let reader = await rig.call(ToolCall("tap", of: shop), of: caller([.registryRead]))
        #expect(reader["_meta"] == ["patchbay/failure": "not-permitted"])
        #expect(app.dials.isEmpty)

        let caller1 = await rig.call(ToolCall("tap", of: shop), of: caller([.endpointCall]))
        #expect(Self.text(caller1).contains("secret.use"))
        #expect(app.requests.allSatisfy { $0.header("Authorization") == nil })

        let caller2 = await rig.call(ToolCall("tap", of: shop), of: caller([.endpointCall, .secretUse]))
        #expect(caller2["isError"] == nil)
    }

    @Test func `what nobody approved is not dialled`() async throws {
        let app = ScriptedApp.appReveal()
        let rig = DeskRig(app)
        let shop = try #require(await rig.appear())
        rig.trust.refuse()

        let result = await rig.call(ToolCall("tap", of: shop), of: rig.owner)

        #expect(result["_meta"] == ["patchbay/failure": "not-approved"])
        #expect(app.dials.isEmpty)
    }

    @Test(arguments: [
        (ScriptedApp.Reply.http(302, ["Location: http://169.254.169.254/"], ""), "redirection"),
        (.http(200, [], "{"), "JSON"),
        (.http(200, [], #"{"jsonrpc":"2.0","id":1,"result":[]}"#), "answer"),
        (.http(500, [], "oops"), "status 500"),
    ])
    func `what is no answer is told as what it is, and nothing is followed`(reply: ScriptedApp.Reply, word: String)
        async throws
    {
        let app = ScriptedApp.appReveal { _ in reply }
        let rig = DeskRig(app)
        let shop = try #require(await rig.appear())

        let result = await rig.call(ToolCall("tap", of: shop), of: rig.owner)

        #expect(result["_meta"] == ["patchbay/failure": "unclear"])
        #expect(Self.text(result).contains(word))
        #expect(app.calls.count == 1)
    }

    @Test func `an app that does not even say what it is has not got the call`() async throws {
        let app = ScriptedApp { _ in .silence }
        let rig = DeskRig(app)
        let shop = try #require(await rig.appear())

        let result = await rig.call(ToolCall("tap", of: shop), of: rig.owner)

        #expect(result["_meta"] == ["patchbay/failure": "mute"])
        #expect(Self.text(result).contains("has not said what it is within 5 s"))
        #expect(app.calls.isEmpty)
    }

    @Test func `an app that takes the call and is silent is given up, and told so`() async throws {
        let app = ScriptedApp.appReveal { _ in .silence }
        let rig = DeskRig(app) { $0.silence = .milliseconds(100) }
        let shop = try #require(await rig.appear())
        try await rig.run {
            let result = await rig.call(ToolCall("tap", of: shop), of: rig.owner)

            #expect(result["_meta"] == ["patchbay/failure": "too-slow"])
            let id = try #require(app.calls.first?.body["id"])
            try await eventually("the call is cancelled") {
                app.requests.last?.method == "notifications/cancelled"
            }
            #expect(app.requests.last?.body["params"]?["requestId"] == id)
        }
    }

    @Test func `whoever calls it off is heard by the app`() async throws {
        let app = ScriptedApp.appReveal { _ in .silence }
        let rig = DeskRig(app)
        let shop = try #require(await rig.appear())
        try await rig.run {
            let call = Task { await rig.call(ToolCall("tap", of: shop), of: rig.owner) }
            try await eventually("it is called") { !app.calls.isEmpty }
            call.cancel()
            _ = await call.value

            try await eventually("the call is cancelled") {
                app.requests.last?.method == "notifications/cancelled"
            }
            #expect(rig.trust.uses.map(\.outcome) == ["cancelled"])
        }
    }

    @Test func `four calls are under way at once, and too many are refused`() async throws {
        let app = ScriptedApp.appReveal { _ in .silence }
        let rig = DeskRig(app) { $0.silence = .milliseconds(300) }
        let shop = try #require(await rig.appear())

        let codes = await withTaskGroup(of: JSON?.self) { group in
            for _ in 0..<80 {
                group.addTask {
                    await rig.call(ToolCall("tap", of: shop), of: rig.owner)["_meta"]?["patchbay/failure"]
                }
            }
            try? await eventually("four are there") { app.calls.count == 4 }
            #expect(app.calls.count == 4)
            group.cancelAll()
            var codes: [JSON?] = []
            for await code in group { codes.append(code) }
            return codes
        }

        #expect(codes.count { $0 == "busy" } == 12)
    }

    @Test func `calls of one holder, however many, are in nobody else's way`() async throws {
        let app = ScriptedApp.appReveal { $0["name"] == "slow" ? .silence : .result(["content": []]) }
        let rig = DeskRig(app)
        let shop = try #require(await rig.appear())
        let other = AgentCaller(.grant("other"), permissions: Permissions([.endpointCall], on: .all))

        try await withThrowingTaskGroup(of: Void.self) { group in
            for _ in 0..<80 { group.addTask { _ = await rig.call(ToolCall("slow", of: shop), of: rig.owner) } }
            try await eventually("four are there") { app.calls.count == 4 }

            let result = await rig.call(ToolCall("tap", of: shop), of: other)

            #expect(result["isError"] == nil)
            #expect(app.calls.count == 5)
            group.cancelAll()
        }
    }
}
