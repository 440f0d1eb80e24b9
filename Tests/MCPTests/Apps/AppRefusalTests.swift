import JSON
import Model
import Testing

@testable import MCP

/// What a caller is told of a call that came to nothing.
@Suite struct AppRefusalTests {
    private static func text(_ result: JSONObject) -> String {
        result["content"]?.array?.first?["text"]?.string ?? ""
    }

    @Test(arguments: [-32_601, -32_602]) func `a tool that the app does not have is said to be none of its tools`(
        code: Int
    ) async throws {
        let app = ScriptedApp.appReveal { _ in .error(code, "Method not found") }
        let rig = DeskRig(app)
        let shop = try #require(await rig.appear())
        let unlisted = await rig.call(AppCall("fly", of: shop), of: rig.owner)
        _ = try await rig.desk.tools(of: shop, for: rig.owner)

        let unknown = await rig.call(AppCall("fly\u{1B}", of: shop), of: rig.owner)
        let known = await rig.call(AppCall("tap", of: shop), of: rig.owner)

        #expect(Self.text(unknown).hasPrefix("\(shop.id) has no tool \"fly\u{FFFD}\""))
        #expect(Self.text(unknown).contains("endpoint_tools"))
        #expect(Self.text(unknown).contains("`patchbay tools \(shop.id)`"))
        #expect(Self.text(unknown).contains("Method not found"))
        #expect(unknown["isError"] == true && unknown["_meta"] == ["patchbay/failure": "refused"])
        for other in [unlisted, known] {
            #expect(Self.text(other) == "\(shop.id) refused the call (error \(code)): Method not found")
        }
    }

    @Test func `another error of the app's says nothing about its tools`() async throws {
        let rig = DeskRig(ScriptedApp.appReveal { _ in .error(-32_000, "starting") })
        let shop = try #require(await rig.appear())
        _ = try await rig.desk.tools(of: shop, for: rig.owner)

        let result = await rig.call(AppCall("fly", of: shop), of: rig.owner)

        #expect(Self.text(result) == "\(shop.id) refused the call (error -32000): starting")
    }

    @Test(arguments: [
        (ScriptedApp.Reply.http(500, [], "database\n\u{1B}locked"), "status 500, \"database"),
        (.http(503, [], ""), "status 503"), (.http(200, [], "oops"), "JSON"), (.http(200, [], ""), "no answer"),
    ])
    func `an answer that cannot be used is one to a call that was delivered`(
        reply: ScriptedApp.Reply,
        words: String
    ) async throws {
        let rig = DeskRig(ScriptedApp.appReveal { _ in reply })
        let shop = try #require(await rig.appear())

        let result = await rig.call(AppCall("tap", of: shop), of: rig.owner)

        #expect(Self.text(result).contains(words))
        #expect(Self.text(result).contains("delivered, result unknown"))
        #expect(!Self.text(result).contains("\u{1B}"))
    }

    @Test func `an app that does not say what it is has got no call`() async throws {
        let app = ScriptedApp { _ in .http(500, [], "no") }
        let rig = DeskRig(app) { $0.wait = .milliseconds(50) }
        let shop = try #require(await rig.appear())

        let result = await rig.call(AppCall("tap", of: shop), of: rig.owner)

        #expect(app.calls.isEmpty)
        #expect(!Self.text(result).contains("delivered") && !Self.text(result).contains("took the call"))
    }
}
