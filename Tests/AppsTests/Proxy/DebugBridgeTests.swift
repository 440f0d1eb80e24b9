import AccessControl
import Model
import Registry
import Samples
import SystemIO
import Testing

@testable import Apps

/// Calls to an app with DebugBridge: a boot token that is exchanged, and a session that is acquired.
@Suite struct DebugBridgeTests {
    private static let kind = EndpointKind("debugbridge")
    private static let recognition = ["GET /healthz", "GET /elements"]

    private static func text(_ result: JSONObject) -> String {
        (result["content"]?.array ?? []).compactMap { $0["text"]?.string }.joined(separator: "\n")
    }

    private func start(
        _ server: PlainServer,
        boot: String? = "BOOT-TOKEN-1"
    ) async throws -> (AppProxyFixture, Endpoint) {
        let fixture = AppProxyFixture(server, profiles: try Profile.allShipped())
        let app = try #require(await fixture.appear(kind: Self.kind))
        if let boot { try fixture.authorizer.set(secret: boot, of: app.id) }
        return (fixture, app)
    }

    private static let tap: JSONObject = ["x": 10, "y": 20]

    @Test func `the boot token is exchanged once, the new one is stored first, and the call has a session`()
        async throws
    {
        let server = PlainServer.debugBridge(boot: "BOOT-TOKEN-1")
        let (fixture, app) = try await start(server)

        let result = await fixture.call(ToolCall("tap", of: app, arguments: Self.tap), of: fixture.owner)

        #expect(result["isError"] == nil, "\(Self.text(result))")
        #expect(
            server.calls.map { $0.line } == ["POST /auth/rotate", "POST /session/acquire", "POST /tap"]
        )
        let new = try #require(fixture.authorizer.secret)
        #expect(server.calls[0].text.contains("Authorization: Bearer BOOT-TOKEN-1\r\n"))
        #expect(server.calls[0].text.hasSuffix("{\"new_token\":\"\(new)\"}"))
        #expect(
            server.calls[2].text == "POST /tap HTTP/1.1\r\nHost: 127.0.0.1:5000\r\nContent-Type: application/json\r\n"
                + "Accept: */*\r\nUser-Agent: patchbay/VERSION\r\nAuthorization: Bearer \(new)\r\n"
                + "X-Session-Id: S-1\r\nContent-Length: 15\r\n\r\n{\"x\":10,\"y\":20}"
        )
        _ = await fixture.call(ToolCall("tap", of: app, arguments: Self.tap), of: fixture.owner)
        #expect(server.lines.count { $0 == "POST /auth/rotate" || $0 == "POST /session/acquire" } == 2)
        #expect(try await fixture.registry.endpoint(app.id).server?.text == "com.example.shop")
    }

    @Test func `an app with DebugBridge and no token is not called`() async throws {
        let server = PlainServer.debugBridge(boot: "BOOT-TOKEN-1")
        let (fixture, app) = try await start(server, boot: nil)

        let result = await fixture.call(ToolCall("elements", of: app, wait: .zero), of: fixture.owner)

        #expect(result["_meta"]?["patchbay/failure"] == "token-required")
        #expect(server.lines == Self.recognition)
        #expect(await fixture.proxy.isOpen(app, for: fixture.owner) == false)
    }

    @Test func `a grant without secret.use neither exchanges nor uses the token`() async throws {
        let server = PlainServer.debugBridge(boot: "BOOT-TOKEN-1")
        let (fixture, app) = try await start(server)

        let result = await fixture.call(ToolCall("elements", of: app), of: .holder(of: "g", [.endpointCall]))

        #expect(result["_meta"]?["patchbay/failure"] == "not-permitted")
        #expect(server.lines == Self.recognition)
    }

    @Test func `a read-only grant calls the tools that the profile declares as read-only`() async throws {
        let server = PlainServer.debugBridge(boot: "BOOT-TOKEN-1")
        let (fixture, app) = try await start(server)
        let reader = Principal.holder(of: "g", [.endpointCall, .secretUse], tools: .readOnly)

        let elements = await fixture.call(ToolCall("elements", of: app), of: reader)
        let tap = await fixture.call(ToolCall("tap", of: app, arguments: Self.tap), of: reader)

        #expect(elements["isError"] == nil, "\(Self.text(elements))")
        #expect(tap["_meta"]?["patchbay/failure"] == "not-permitted")
        #expect(!server.lines.contains("POST /tap"))
    }

    @Test func `a token is not tried before it is stored, because it works once`() async throws {
        let server = PlainServer.debugBridge(boot: "BOOT-TOKEN-1")
        let (fixture, app) = try await start(server)

        #expect(await fixture.proxy.accepts(try EndpointSecret("BOOT-TOKEN-1"), at: app, for: fixture.owner) == nil)
        #expect(await fixture.proxy.isOpen(app, for: fixture.owner) == true)

        #expect(server.requests.isEmpty)
    }

    @Test func `a new token that cannot be stored is stored before anything else is sent`() async throws {
        let server = PlainServer.debugBridge(boot: "BOOT-TOKEN-1")
        let (fixture, app) = try await start(server)
        fixture.authorizer.set(isFull: true)

        let first = await fixture.call(ToolCall("elements", of: app), of: fixture.owner)
        #expect(Self.text(first).contains("its new token could not be saved"), "\(Self.text(first))")
        #expect(server.lines.last == "POST /auth/rotate")
        fixture.authorizer.set(isFull: false)
        let second = await fixture.call(ToolCall("elements", of: app), of: fixture.owner)

        #expect(Self.text(second) == #"{"elements":[]}"#)
        #expect(server.lines.count { $0 == "POST /auth/rotate" } == 1)
    }

    @Test func `an exchange without a response is completed with the same new token`() async throws {
        let losses = Counter()
        let server = PlainServer.debugBridge(boot: "BOOT-TOKEN-1") {
            $0 == "POST /auth/rotate" && losses.enter() == 1 ? .drop : nil
        }
        let (fixture, app) = try await start(server)

        let result = await fixture.call(ToolCall("elements", of: app), of: fixture.owner)

        #expect(Self.text(result) == #"{"elements":[]}"#)
        let exchanges = server.requests.filter { $0.hasPrefix("POST /auth/rotate") }
        #expect(exchanges.count == 2 && exchanges[0] == exchanges[1])
    }

    @Test func `a lost session is acquired again, and the call is sent again once`() async throws {
        let taps = Counter()
        let server = PlainServer.debugBridge(boot: "BOOT-TOKEN-1") {
            $0 == "POST /tap" && taps.enter() <= 2
                ? .json(#"{"error":"session_invalid_or_expired"}"#, status: 409) : nil
        }
        let (fixture, app) = try await start(server)

        let result = await fixture.call(ToolCall("tap", of: app, arguments: Self.tap), of: fixture.owner)

        #expect(result["isError"] == true)
        #expect(Self.text(result).contains("session_invalid_or_expired"))
        let calls = ["POST /session/acquire", "POST /tap"]
        #expect(server.calls.map { $0.line } == ["POST /auth/rotate"] + calls + calls)
    }

    @Test func `a device that another client holds is reported as busy`() async throws {
        let server = PlainServer.debugBridge(boot: "BOOT-TOKEN-1") {
            $0 == "POST /session/acquire" ? .json(#"{"error":"device_locked"}"#, status: 423) : nil
        }
        let (fixture, app) = try await start(server)

        let result = await fixture.call(ToolCall("tap", of: app, arguments: Self.tap), of: fixture.owner)

        #expect(Self.text(result).contains("another client holds its session"))
        #expect(result["_meta"]?["patchbay/failure"] == "busy")
        #expect(!server.lines.contains("POST /tap"))
    }

    @Test func `the session is ended when the broker stops`() async throws {
        let server = PlainServer.debugBridge(boot: "BOOT-TOKEN-1")
        let (fixture, app) = try await start(server)
        _ = await fixture.call(ToolCall("tap", of: app, arguments: Self.tap), of: fixture.owner)

        await fixture.proxy.pool.endProfileSessions()
        await fixture.proxy.pool.endProfileSessions()

        #expect(server.lines.count { $0 == "POST /session/release" } == 1)
        #expect(server.requests.last?.contains("X-Session-Id: S-1\r\n") == true)
    }

    @Test func `a relaunched app gets the boot token of its new launch`() async throws {
        let server = PlainServer.debugBridge(boot: "BOOT-TOKEN-1")
        let (fixture, app) = try await start(server)
        _ = await fixture.call(ToolCall("elements", of: app), of: fixture.owner)
        server.relaunch(as: .debugBridge(boot: "BOOT-TOKEN-2"))
        try fixture.authorizer.set(secret: "BOOT-TOKEN-2", of: app.id)

        let result = await fixture.call(ToolCall("elements", of: app), of: fixture.owner)

        #expect(Self.text(result) == #"{"elements":[]}"#)
        #expect(server.lines.count { $0 == "POST /auth/rotate" } == 2)
    }
}
