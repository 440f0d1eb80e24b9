import FoundationEssentials
import Model
import TestSupport
import Testing

/// DevTools servers behind the real broker.
@Suite(.needs(.python), .timeLimit(.minutes(3)), .scratchFolder) struct DevToolsTests {
    private let scratch = ScratchFolder.current

    /// The member `webPages` of `patchbay show --json`.
    private struct Shown: Decodable { let webPages: WebPages? }

    private static func pages(of id: String, by broker: RunningBroker) async throws -> WebPages? {
        let text = try await broker.ask("show", id, "--json").joined()
        return try JSONDecoder().decode(Shown.self, from: Data(text.utf8)).webPages
    }

    @Test(.needs(.browser))
    func `Playwright drives a real browser through a tunnel that survives a relaunch`() async throws {
        let browser = try await Browser(in: scratch)
        let broker = try await RunningBroker(in: scratch)
        _ = try await broker.ask("add", "Chrome", "127.0.0.1:\(browser.port)", "--kind", "web")
        let direct = try #require(try await Self.pages(of: "chrome", by: broker))
        #expect(direct.http == "http://127.0.0.1:\(browser.port)")
        #expect(direct.pages.map(\.url.text) == ["about:blank"])

        let forward = try await broker.ask("forward", "tcp:0", "--endpoint", "chrome", "--detach")
        let url = try #require(forward.last?.split(separator: " ").last.map(String.init))
        #expect(forward.last == "DevTools: \(url)")
        #expect(try await Browser.drive(url, title: "Shop", in: scratch) == "Shop")

        let shown = try #require(try await Self.pages(of: "chrome", by: broker))
        let page = try #require(shown.pages.first { $0.title.text == "Shop" })
        #expect(shown.http == url && page.type.text == "page")
        let socket = url.replacing("http:", with: "ws:") + "/devtools/page/"
        #expect(page.webSocketDebuggerUrl?.hasPrefix(socket) == true, "\(page)")
        let text = try await broker.ask("show", "chrome").joined(separator: "\n")
        #expect(text.contains("page: Shop") && text.contains(socket), "\(text)")

        browser.program.kill()
        _ = try await browser.program.exitStatus()
        let message = try await broker.ask("show", "chrome").first { $0.contains("pages") }
        #expect(message?.contains("not shown") == true, "\(message ?? "")")
        _ = try await Browser(port: browser.port, named: "relaunch", in: scratch)
        #expect(try await Browser.drive(url, title: "Again", in: scratch) == "Again")
        #expect(try await broker.endpoints().map(\.id.text) == ["chrome"])
    }

    @Test(.needs(.browser))
    func `a request of a web page is refused by the tunnel, or else by the browser`() async throws {
        let browser = try await Browser(in: scratch)
        let broker = try await RunningBroker(in: scratch)
        _ = try await broker.ask("add", "Chrome", "127.0.0.1:\(browser.port)", "--kind", "web")
        let guarded = try await broker.forward("tcp:0", "--endpoint", "chrome")
        let open = try await broker.forward("tcp:0", "--endpoint", "chrome", "--allow-browsers")
        let page = try #require(try await Self.pages(of: "chrome", by: broker)?.pages.first)
        let path = try #require(page.webSocketDebuggerUrl).drop { $0 != "/" }.dropFirst(2).drop { $0 != "/" }
        // The status of a WebSocket handshake. A connection that is open stays open until the time is over.
        func status(_ port: UInt16, _ more: String...) async throws -> String? {
            let headers = [
                "Connection: Upgrade", "Upgrade: websocket", "Sec-WebSocket-Version: 13",
                "Sec-WebSocket-Key: AAAAAAAAAAAAAAAAAAAAAA==",
            ]
            let words = ["-sS", "-o", "/dev/null", "-w", "%{http_code}", "--http1.1", "--max-time", "2"]
            let url = "http://127.0.0.1:\(port)\(path)"
            let curl = try await Program("curl", words + (headers + more).flatMap { ["-H", $0] } + [url], in: scratch)
            return try await curl.lines().first { $0.source == .output }?.text
        }

        #expect(try await status(guarded, "Origin: http://shop.example") == "403")
        #expect(try await status(open, "Origin: http://shop.example") == "403", "Chrome checks the origin itself")
        #expect(try await status(guarded) == "101")
    }

    @Test(.needs(.adb, .browser))
    func `Playwright drives a page of an Android app, whose ID and tunnel survive a relaunch`() async throws {
        let apps = scratch.file("apps")
        func run(_ process: Int, _ browser: Browser) throws {
            let shop = "\(process) 10234 com.example.shop webview_devtools_remote_\(process)=\(browser.port)"
            try Data(shop.utf8).write(to: URL(filePath: apps), options: .atomic)
        }
        let first = try await Browser(in: scratch)
        try run(4_711, first)
        var phone = AndroidPhone("R58M12ABCDE")
        (phone.apps, phone.abstractSockets) = (apps, ["chrome_devtools_remote": first.port])
        let android = try await ADBFixture([phone], in: scratch)
        let api = try FreePorts.take()[0]
        let broker = try await RunningBroker(
            in: scratch,
            android: android,
            configuration: "[api]\nport = \(api)\n[devices]\nprobe_ports = []\n"
        )
        try await eventually("both are listed") {
            try await broker.endpoints().map(\.id.text).sorted() == ["web-chrome-pixel-8", "web-shop-pixel-8"]
        }
        let id = "web-shop-pixel-8"
        let forward = try await broker.ask("forward", "tcp:0", "--endpoint", id, "--detach")
        let url = try #require(forward.last?.split(separator: " ").last.map(String.init))
        #expect(try await Browser.drive(url, title: "Shop", in: scratch) == "Shop")
        let shown = try #require(try await Self.pages(of: id, by: broker))
        #expect(shown.http == url && shown.pages.contains { $0.title.text == "Shop" }, "\(shown)")
        #expect(try await Browser.driveWithPuppeteer(url, title: "Tree", in: scratch) == "Tree")
        try await expectInspection(at: url)
        let agent = try await GrantClient(["registry.read", "tunnel.open"], of: broker, port: api, in: scratch)
        let spec = #"{"local":"tcp:0","target":{"endpoint":"\#(id)"},"noRebind":true,"persistent":false}"#
        #expect(try await agent.post("/v1/tunnels", spec).status == 201)

        try run(4_712, try await Browser(named: "relaunch", in: scratch))
        try await eventually("the new launch is known") {
            try await broker.ask("show", id).joined().contains("localabstract:webview_devtools_remote_4712")
        }
        #expect(try await Browser.drive(url, title: "Again", in: scratch) == "Again")
        try Data().write(to: URL(filePath: apps), options: .atomic)
        try await eventually("the app is gone") {
            try await broker.endpoints().first { $0.id.text == id }?.state == .offline
        }
    }

    /// Makes the requests by which chrome://inspect finds a page at a configured address and attaches to it.
    private func expectInspection(at url: String) async throws {
        let port = try #require(url.split(separator: ":").last.flatMap { UInt16($0) })
        let host = "Host: 127.0.0.1:\(port)"
        let version = try await Browser.inspect("/json/version", host, port: port)
        #expect(version.hasPrefix("HTTP/1.1 200") && version.contains("ws://127.0.0.1:\(port)/"), "\(version)")
        let list = try await Browser.inspect("/json/list", host, port: port)
        let socket = try #require(list.split(separator: "ws://127.0.0.1:\(port)").dropFirst().first, "\(list)")
        let attached = try await Browser.inspect(
            String(socket.prefix { $0 != "\"" }),
            "Connection: Upgrade",
            host,
            "Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==",
            "Sec-WebSocket-Version: 13",
            "Upgrade: WebSocket",
            port: port
        )
        #expect(attached.hasPrefix("HTTP/1.1 101"), "\(attached)")
    }

    @Test func `a tunnel needs the scope shell, and the list of pages endpoint.call`() async throws {
        let server = try LoopbackServer(in: scratch, http: { $0 == "/json/list" ? "[]" : nil })
        let api = try FreePorts.take()[0]
        let broker = try await RunningBroker(in: scratch, configuration: "[api]\nport = \(api)\n")
        _ = try await broker.ask("add", "Node", "127.0.0.1:\(server.port)", "--kind", "web")
        let spec = #"{"local":"tcp:0","target":{"endpoint":"node"},"noRebind":true,"persistent":false}"#

        let reader = try await GrantClient(["registry.read", "tunnel.open"], of: broker, port: api, in: scratch)
        let refused = try await reader.post("/v1/tunnels", spec)
        #expect(refused.status == 403 && refused.body.contains("needs the scope shell"), "\(refused.body)")
        #expect(try await reader.get("/v1/endpoints/node/pages").status == 403)
        let caller = try await GrantClient(
            ["registry.read", "endpoint.call", "tunnel.open", "shell"],
            of: broker,
            port: api,
            in: scratch
        )
        #expect(try await caller.get("/v1/endpoints/node/pages").body.contains(#""pages":[]"#))
        #expect(try await caller.post("/v1/tunnels", spec).status == 201)
    }

    @Test func `a hostile list neither reaches the terminal nor stops the broker`() async throws {
        let lists = [
            "escapes": #"[7,{"title":"a\u001b[2Jb","type":{},"url":"x\ny","webSocketDebuggerUrl":"ws://evil/\u0007"}]"#,
            "large": "[" + String(repeating: #"{"title":"x"},"#, count: 700_000) + "{}]",
            "deep": String(repeating: "[", count: 500_000),
            "other": #"{"pages":[]}"#,
        ]
        let broker = try await RunningBroker(in: scratch)
        var shown: [String: String] = [:]
        for (name, list) in lists {
            let server = try LoopbackServer(in: scratch, http: { $0.hasPrefix("/json") ? list : nil })
            _ = try await broker.ask("add", name, "127.0.0.1:\(server.port)", "--kind", "web")
            shown[name] = try await broker.ask("show", name).joined(separator: "\n")
        }

        #expect(shown["escapes"]?.contains(": a\u{FFFD}[2Jb") == true, "\(shown)")
        #expect(shown["escapes"]?.contains("x\u{FFFD}y") == true && shown["escapes"]?.contains("evil") == false)
        #expect(shown["escapes"]?.contains("1 not shown") == true)
        #expect(shown["large"]?.contains("over 1 MiB") == true, "\(shown)")
        for name in ["deep", "other"] { #expect(shown[name]?.contains("has no list of pages") == true, "\(shown)") }
        let probe = try await broker.start("show", "other", "--probe")
        #expect(try await probe.exitStatus() != .exited(0))
        #expect(probe.log.contains("has no list of pages"), "\(probe.log)")
    }
}
