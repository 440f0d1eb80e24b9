import AccessControl
import Glibc
@testable import Apps
import Model
import Registry
import SystemIO
import TestSupport
import Testing

/// Calls to an app with app-debug, which speaks plain HTTP and no MCP.
@Suite(.scratchFolder) struct AppDebugTests {
    private let scratch = ScratchFolder.current
    private static let common = "Host: 127.0.0.1:5000\r\nAccept: */*\r\nUser-Agent: patchbay/VERSION\r\n"
    private static let recognition = ["GET /actions", "GET /patchbay-recognition"]

    private func fixture(_ server: PlainServer) throws -> AppProxyFixture {
        AppProxyFixture(server, profiles: try Profile.allShipped())
    }

    private static func text(_ result: JSONObject) -> String {
        (result["content"]?.array ?? []).compactMap { $0["text"]?.string }.joined(separator: "\n")
    }

    @Test func `a screenshot needs one call, and its bytes become an image block`() async throws {
        let server = PlainServer.appDebug()
        let fixture = try fixture(server)
        let app = try #require(await fixture.appear(kind: .appDebug))

        let result = await fixture.call(ToolCall("screenshot", of: app), of: fixture.owner)

        let image = result["content"]?.array?.first
        #expect(image?["type"] == "image" && image?["mimeType"] == "image/png")
        #expect(image?["data"]?.string?.hasPrefix("iVBORw0KGgo") == true)
        #expect(
            server.requests == [
                "GET /actions HTTP/1.1\r\n\(Self.common)\r\n",
                "GET /patchbay-recognition HTTP/1.1\r\n\(Self.common)\r\n",
                "GET /screenshot HTTP/1.1\r\n\(Self.common)\r\n",
            ]
        )
        #expect(fixture.authorizer.events.map(\.outcome) == ["answered"])
        let listed = try await fixture.registry.endpoint(app.id)
        #expect(listed.server?.text == "app-debug")
        #expect(await fixture.proxy.toolCount(of: app) == nil)
    }

    @Test func `an activation sends the identifier, and is not repeated after a lost response`() async throws {
        let server = PlainServer.appDebug { $0 == "POST /activate" ? .drop : nil }
        let fixture = try fixture(server)
        let app = try #require(await fixture.appear(kind: .appDebug))
        let call = ToolCall("activate", of: app, arguments: ["identifier": "buy"])

        let result = await fixture.call(call, of: fixture.owner)

        #expect(Self.text(result).hasPrefix("delivered, result unknown"))
        #expect(server.lines == Self.recognition + ["POST /activate"])
        #expect(
            server.requests.last == "POST /activate HTTP/1.1\r\nHost: 127.0.0.1:5000\r\n"
                + "Content-Type: application/json\r\nAccept: */*\r\nUser-Agent: patchbay/VERSION\r\nContent-Length: 20\r\n\r\n{\"identifier\":\"buy\"}"
        )
    }

    @Test func `a read-only tool is called again after a lost response`() async throws {
        let losses = Counter()
        let server = PlainServer.appDebug { $0 == "GET /state" && losses.enter() == 1 ? .drop : nil }
        let fixture = try fixture(server)
        let app = try #require(await fixture.appear(kind: .appDebug))
        let tools = try await fixture.proxy.tools(of: app, for: fixture.owner)

        let result = await fixture.call(ToolCall("app_state", of: app), of: fixture.owner)

        #expect(tools.tools.contains { $0["name"]?.string == "app_state" })
        #expect(Self.text(result) == #"{"user":{"name":"Anna"}}"#)
        #expect(server.lines.count { $0 == "GET /state" } == 2)
    }

    @Test func `a call waits for an app that is restarting`() async throws {
        let server = PlainServer.appDebug()
        let fixture = try fixture(server)
        let app = try #require(await fixture.appear(kind: .appDebug))
        try await fixture.run {
            await fixture.disappear()

            async let result = fixture.call(ToolCall("list_actions", of: app), of: fixture.owner)
            await Task.yield()
            await fixture.appear(port: 6_000, kind: .appDebug)

            #expect(Self.text(await result) == #"["buy","cancel"]"#)
            #expect(server.lines == Self.recognition + ["GET /actions"])
        }
    }

    @Test func `another server gets no call, and the app is called as soon as it is back`() async throws {
        let server = PlainServer { _, _ in .json(#"{"status":"ok"}"#) }
        let fixture = try fixture(server)
        let app = try #require(await fixture.appear(kind: .appDebug))

        let result = await fixture.call(ToolCall("record_start", of: app), of: fixture.owner)

        #expect(Self.text(result).contains("to GET /actions, so it is not app-debug"), "\(Self.text(result))")
        #expect(result["_meta"]?["patchbay/failure"] == "invalid-response")
        #expect(server.lines == ["GET /actions"])
        #expect(try await fixture.registry.endpoint(app.id).routes.first?.mismatch == nil)

        server.relaunch(as: .appDebug())
        let screenshot = await fixture.call(ToolCall("screenshot", of: app), of: fixture.owner)
        #expect(screenshot["content"]?.array?.first?["type"] == "image")
    }

    @Test func `a busy server is not mistaken for another one`() async throws {
        let server = PlainServer { _, _ in .json("{}", status: 503) }
        let fixture = try fixture(server)
        let app = try #require(await fixture.appear(kind: .appDebug))

        let result = await fixture.call(ToolCall("screenshot", of: app, wait: .zero), of: fixture.owner)

        #expect(Self.text(result).contains("status 503 to GET /actions"), "\(Self.text(result))")
        #expect(try await fixture.registry.endpoint(app.id).routes.first?.mismatch == nil)
    }

    @Test(arguments: [
        ("tap", "no coordinates: app-debug activates elements by identifier; use activate"),
        ("screenshto", "did you mean \"screenshot\"?"), ("swipe", "no typing and no gestures"),
    ])
    func `a missing tool is refused with the reason and the nearest tool`(name: String, reason: String) async throws {
        let server = PlainServer.appDebug()
        let fixture = try fixture(server)
        let app = try #require(await fixture.appear(kind: .appDebug))

        let result = await fixture.call(ToolCall(name, of: app), of: fixture.owner)
        let direct = try await AppRequestHandler(app.id, proxy: fixture.proxy).answer(
            MCPRequest("tools/call", ["name": .string(name)]),
            of: fixture.owner
        )

        for answer in [result, direct] {
            #expect(answer["isError"] == true && answer["content"]?.array?.count == 1)
            #expect(Self.text(answer).contains("there is no tool \"\(name)\""))
            #expect(Self.text(answer).contains(reason), "\(Self.text(answer))")
        }
        #expect(server.lines.allSatisfy(Self.recognition.contains))
    }

    @Test func `an invalid argument is refused before the app is asked`() async throws {
        let server = PlainServer.appDebug()
        let fixture = try fixture(server)
        let app = try #require(await fixture.appear(kind: .appDebug))

        let result = await fixture.call(ToolCall("activate", of: app, arguments: ["id": "buy"]), of: fixture.owner)

        #expect(Self.text(result).hasPrefix("\(app.id): activate was not called: "), "\(Self.text(result))")
        #expect(result["isError"] == true)
        #expect(server.lines == Self.recognition)
    }

    @Test func `a recording is stored, and the result has a link with its size`() async throws {
        let store = ArtifactFixture.store(in: scratch)
        let fixture = AppProxyFixture(
            PlainServer.appDebug(),
            profiles: try Profile.allShipped(),
            sizeLimiter: ResultSizeLimiter(images: ImageResizer(), artifacts: store)
        )
        let app = try #require(await fixture.appear(kind: .appDebug))
        let agent = ArtifactFixture.agent("a")

        let result = await fixture.call(ToolCall("record_stop", of: app), of: agent)

        let link = try #require(result["content"]?.array?.first)
        #expect(link["type"] == "resource_link" && link["mimeType"] == "video/mp4")
        #expect(link["size"]?.int == PlainServer.video.count)
        #expect(link["name"]?.string?.hasSuffix(".mp4") == true)
        #expect(JSON.object(result).bytes.count < 1_000)
        let sha = try #require(link["uri"]?.string).dropFirst(ArtifactStore.scheme.count)
        #expect(await store.artifact(String(sha), for: agent)?.bytes == PlainServer.video)
        #expect(await store.artifact(String(sha), for: ArtifactFixture.agent("b")) == nil)
    }

    @Test func `a recording that is no MP4 file is reported as such`() async throws {
        let server = PlainServer.appDebug { $0 == "POST /record/stop" ? .json(#"{"ok":false}"#) : nil }
        let fixture = try fixture(server)
        let app = try #require(await fixture.appear(kind: .appDebug))

        let result = await fixture.call(ToolCall("record_stop", of: app), of: fixture.owner)

        #expect(Self.text(result).contains("that are no MP4 file"), "\(Self.text(result))")
    }

    @Test func `calls are sent one after another, because the app works on its main thread`() async throws {
        let open = Counter()
        let server = PlainServer.appDebug { line in
            guard line == "GET /state" else { return nil }
            defer { open.leave() }
            let isAlone = open.enter() == 1
            usleep(10_000)
            return isAlone ? nil : .json("{}", status: 500)
        }
        let fixture = try fixture(server)
        let app = try #require(await fixture.appear(kind: .appDebug))

        let results = await withTaskGroup(of: String.self) { group in
            for _ in 0..<4 {
                group.addTask { Self.text(await fixture.call(ToolCall("app_state", of: app), of: fixture.owner)) }
            }
            return await group.reduce(into: []) { $0.append($1) }
        }

        #expect(results == Array(repeating: #"{"user":{"name":"Anna"}}"#, count: 4))
    }

    @Test func `the server describes itself with the profile's capabilities and limits`() async throws {
        let fixture = try fixture(PlainServer.appDebug())
        let app = try #require(await fixture.appear(kind: .appDebug))

        let description = await AppRequestHandler(app.id, proxy: fixture.proxy).description(for: fixture.owner)

        #expect(description.info["name"] == "app-debug")
        #expect(description.instructions?.contains("Capabilities: screenshot, ") == true)
        #expect(description.instructions?.contains("no coordinates") == true)
    }
}
