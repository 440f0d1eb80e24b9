import Model
import Testing

@testable import Apps

/// Servers as they are in the field: each has tools, whatever it does in the handshake.
@Suite struct ServerBehaviorTests {
    /// One way to answer the handshake.
    struct Behavior: Sendable, CustomTestStringConvertible {
        let testDescription: String
        /// Returns the answer of the behaviour; nil for the ordinary one.
        let reply: @Sendable (ScriptedApp.Request) -> ScriptedApp.Reply?
        /// The version that the server speaks.
        var version = "2025-11-25"
        /// The versions that `initialize` was asked with, in order.
        var asked = ["2025-11-25"]
        var deviations: [ServerDeviation.Kind] = []

        init(
            _ name: String,
            version: String = "2025-11-25",
            asked: [String] = ["2025-11-25"],
            _ deviations: [ServerDeviation.Kind] = [],
            _ reply: @escaping @Sendable (ScriptedApp.Request) -> ScriptedApp.Reply?
        ) {
            testDescription = name
            self.reply = reply
            (self.version, self.asked, self.deviations) = (version, asked, deviations)
        }
    }

    private static let older = ["2025-11-25", "2025-06-18", "2025-03-26", "2024-11-05"]

    /// Refuses each version but some, with an error.
    private static func refusing(
        allBut known: [String],
        data: Bool,
        status: Int = 200
    ) -> @Sendable (ScriptedApp.Request) -> ScriptedApp.Reply? {
        { request in
            let version = request.body["params"]?["protocolVersion"]?.string
            guard request.method == "initialize", let version, !known.contains(version) else { return nil }
            var error: JSONObject = ["code": -32_602, "message": "Unsupported protocol version"]
            if data { error["data"] = ["supported": .array(known.map { .string($0) }), "requested": .string(version)] }
            let id = request.body["id"] ?? .null
            return .http(status, [], JSON.object(["jsonrpc": "2.0", "id": id, "error": .object(error)]).text)
        }
    }

    private static func answering(_ version: String) -> @Sendable (ScriptedApp.Request) -> ScriptedApp.Reply? {
        { request in
            request.method == "initialize"
                ? .result(["protocolVersion": .string(version), "serverInfo": ["name": "x"], "capabilities": [:]]) : nil
        }
    }

    static let behaviors: [Behavior] = [
        Behavior("knows the newest version") { _ in nil },
        Behavior("takes only whole numbers as IDs") { request in
            guard let id = request.body["id"], id.int == nil else { return nil }
            return .http(500, [], "TypeError")
        },
        Behavior("answers IDs as text", [.textIDs]) { request in
            guard request.method == "initialize", let id = request.body["id"]?.int else { return nil }
            let result = #"{"protocolVersion":"2025-11-25","serverInfo":{"name":"x"},"capabilities":{}}"#
            return .http(200, [], #"{"jsonrpc":"2.0","id":"\#(id)","result":\#(result)}"#)
        },
        Behavior(
            "refuses newer versions, with a list",
            version: "2025-03-26",
            asked: ["2025-11-25", "2025-03-26"],
            [.refusedVersion],
            refusing(allBut: ["2024-11-05", "2025-03-26"], data: true)
        ),
        Behavior(
            "refuses newer versions with 400 and a list",
            version: "2025-06-18",
            asked: ["2025-11-25", "2025-06-18"],
            [.refusedVersion],
            refusing(allBut: ["2025-06-18"], data: true, status: 400)
        ),
        Behavior(
            "refuses newer versions without a list",
            version: "2024-11-05",
            asked: older,
            [.refusedVersion],
            refusing(allBut: ["2024-11-05"], data: false)
        ),
        Behavior(
            "refuses newer versions with 400 and plain text",
            version: "2025-06-18",
            asked: ["2025-11-25", "2025-06-18"],
            [.refusedVersion]
        ) { request in
            let version = request.body["params"]?["protocolVersion"]
            return request.method == "initialize" && version != "2025-06-18"
                ? .http(400, [], "Bad Request: Unsupported protocol version") : nil
        },
        Behavior("answers without a version", version: "2024-11-05", [.unknownVersion]) { request in
            guard request.method == "initialize", let id = request.body["id"]?.int else { return nil }
            return .http(
                200,
                [],
                #"{"jsonrpc":"2.0","id":\#(id),"result":{"serverInfo":{"name":"x"},"capabilities":{}}}"#
            )
        },
        Behavior(
            "answers with a draft version",
            version: "2024-11-05",
            asked: ["2025-11-25", "2024-11-05"],
            [.refusedVersion, .unknownVersion],
            answering("2024-10-07")
        ),
        Behavior(
            "answers with an unknown version between two known ones",
            version: "2025-06-18",
            asked: ["2025-11-25", "2025-06-18"],
            [.refusedVersion, .unknownVersion],
            answering("2025-09-30")
        ),
        Behavior("answers with an older version", version: "2024-11-05", [], answering("2024-11-05")),
        Behavior("closes the connection after an unknown method", [.refusedDiscovery]) { request in
            request.method == "server/discover" ? .drop : nil
        },
        Behavior("redirects to a path with a slash", [.redirect]) { request in
            guard request.head.hasPrefix("POST /mcp ") else { return nil }
            return .http(307, ["Location: /mcp/"], "")
        },
    ]

    private static func app(_ behavior: Behavior) -> ScriptedApp {
        ScriptedApp { request in
            if let reply = behavior.reply(request) { return reply }
            switch request.method {
            case "initialize":
                return .result([
                    "protocolVersion": request.body["params"]?["protocolVersion"] ?? "",
                    "serverInfo": ["name": "x"], "capabilities": ["tools": [:]],
                ])
            case "tools/list": return .result(["tools": [["name": "tap", "inputSchema": ["type": "object"]]]])
            case "tools/call": return .result(["content": [["type": "text", "text": "tapped"]]])
            case let method where method.hasPrefix("notifications/"): return .http(202, [], "")
            default: return .error(-32_601, "Method not found")
            }
        }
    }

    @Test(arguments: behaviors) func `the tools of a server can be listed and called`(behavior: Behavior) async throws {
        let app = Self.app(behavior)
        let fixture = AppProxyFixture(app)
        let shop = try #require(await fixture.appear(kind: .mcp))

        #expect(try await fixture.proxy.tools(of: shop, for: fixture.owner).tools.map { $0["name"] } == ["tap"])
        let result = await fixture.call(ToolCall("tap", of: shop), of: fixture.owner)

        #expect(result["content"]?.array?.first?["text"] == "tapped", "\(result)")
        let asked = app.requests.filter { $0.method == "initialize" }.compactMap {
            $0.body["params"]?["protocolVersion"]?.string
        }
        #expect(asked == behavior.asked)
        #expect(fixture.proxy.pool.server(of: shop.id)?.protocolVersion.rawValue == behavior.version)
        let described = try #require(fixture.proxy.describingDeviations([shop]).first)
        // A server that redirects does so for each request of the handshake.
        #expect(described.deviations?.map(\.text) ?? [] == behavior.deviations.map(\.rawValue))
        #expect(app.requests.allSatisfy { $0.body["id"].map { $0.int != nil } ?? true })
    }

    @Test func `the path and the version that worked are kept for the launch`() async throws {
        let app = Self.app(Self.behaviors[3])
        let fixture = AppProxyFixture(app)
        let shop = try #require(await fixture.appear(kind: .mcp))
        _ = try await fixture.proxy.tools(of: shop, for: fixture.owner)
        await fixture.proxy.pool.disconnect(shop.id)

        let before = app.requests.count
        _ = try await fixture.proxy.tools(of: shop, for: fixture.owner)

        #expect(
            app.requests.dropFirst(before).map(\.method) == ["initialize", "notifications/initialized", "tools/list"]
        )
        #expect(app.requests[before].body["params"]?["protocolVersion"] == "2025-03-26")
        #expect(fixture.proxy.describingDeviations([shop])[0].deviations?.first?.count == 1)

        await fixture.proxy.endLaunch(of: shop.id)

        #expect(fixture.proxy.describingDeviations([shop])[0].deviations == nil)
        let restart = app.requests.count
        _ = try await fixture.proxy.tools(of: shop, for: fixture.owner)
        #expect(app.requests.dropFirst(restart).first?.method == "server/discover")
    }

    @Test func `a redirect to another origin is named, and the token stays`() async throws {
        let app = ScriptedApp { _ in .http(302, ["Location: http://10.0.0.9/mcp"], "") }
        let fixture = AppProxyFixture(app)
        let shop = try #require(await fixture.appear(kind: .mcp))

        let result = await fixture.call(ToolCall("tap", of: shop), of: fixture.owner)

        let text = result["content"]?.array?.first?["text"]?.string ?? ""
        #expect(text.contains("a redirect to http://10.0.0.9/mcp, which is not followed"), "\(text)")
    }

    @Test func `a server with a newer version is named with its version`() async throws {
        let app = Self.app(Behavior("newer", [], Self.answering("2027-01-01")))
        let fixture = AppProxyFixture(app)
        let shop = try #require(await fixture.appear(kind: .mcp))

        let result = await fixture.call(ToolCall("tap", of: shop), of: fixture.owner)

        #expect(result["content"]?.array?.first?["text"]?.string?.contains("2027-01-01") == true)
    }

    @Test func `a line-based server that closes the stream after an unknown method is asked again`() async throws {
        let app = ScriptedLines { message in
            switch message["method"]?.string {
            case "server/discover": .end
            case "initialize": .result(["protocolVersion": "2025-06-18", "serverInfo": ["name": "lines"]])
            case "tools/call": .result(["content": [["type": "text", "text": "tapped"]]])
            default: .result(["tools": [["name": "tap"]]])
            }
        }
        let fixture = AppProxyFixture(app)
        let shop = try #require(await fixture.appear(kind: .mcp, source: .bonjour))

        let result = await fixture.call(ToolCall("tap", of: shop), of: fixture.owner)

        #expect(result["content"]?.array?.first?["text"] == "tapped", "\(result)")
        #expect(app.dials == 2)
    }
}
