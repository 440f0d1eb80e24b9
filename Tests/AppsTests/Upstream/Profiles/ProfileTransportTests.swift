import AccessControl
import Model
import Samples
import SystemIO
import TestSupport
import Testing

@testable import Apps

@Suite struct ProfileTransportTests {
    private static let route = Route.network(NetworkRoute(address: "127.0.0.1", port: 5_000))

    private let clock = ManualClock()
    private let tasks = BackgroundTasks()

    private func transport(_ profile: Profile, to server: PlainServer, secret: String? = nil) throws -> ProfileTransport
    {
        let id: EndpointID = "shop"
        let authorizer = PermissiveAuthorizer()
        let routes = try Self.routes(secret)
        let pool = ConnectionPool(to: id, dialer: server, clock: clock, watch: ElapsedTimer(clock), tasks: tasks)
        let access = ProfileAccess(
            admit: { DeliveryAuthorization(routes, of: .broker, by: authorizer, since: 0, limit: .seconds(5)) },
            store: { _ in }
        )
        let client = ProfileClient(profile, at: Self.route, over: pool, access: access, tasks: tasks)
        return ProfileTransport(client: client, artifacts: ResultSizeLimiter.sample.artifacts)
    }

    private static func routes(_ secret: String?) throws -> [AuthorizedRoute] {
        [AuthorizedRoute(route, secret: try secret.map { try EndpointSecret($0) })]
    }

    private static func ask(
        _ transport: ProfileTransport,
        _ method: String,
        _ params: JSONObject = [:],
        secret: String? = nil,
        timeout: Duration? = nil
    ) async throws -> JSON {
        var message = UpstreamMessage(method, params, id: JSONNumber(1))
        message.limits.total = .seconds(120)
        message.callerTimeout = timeout
        let response = try await transport.exchange(message, by: routes(secret), handler: UpstreamMessageHandler())
        return try #require(response.outcome).get()
    }

    @Test func `notifications have no effect, and there is no stream of the server's own messages`() async throws {
        let server = PlainServer.appDebug()
        let transport = try transport(.shipped("app-debug"), to: server)
        let handler = UpstreamMessageHandler()
        let shop = try ServerInfo(
            handshake: ["protocolVersion": "2025-11-25", "capabilities": ["tools": [:]]],
            at: .profile,
            sessionID: nil
        )

        let accepted = try await transport.exchange(
            UpstreamMessage("notifications/initialized"),
            by: Self.routes(nil),
            handler: handler
        )
        let stream = try await transport.exchange(
            UpstreamMessage(response: nil, to: shop),
            by: Self.routes(nil),
            handler: handler
        )

        #expect(accepted.status == 202 && stream.status == 405)
        #expect(server.requests.isEmpty)
    }

    @Test func `nothing is sent over another route than the recognised one`() async throws {
        let server = PlainServer.appDebug()
        let transport = try transport(.shipped("app-debug"), to: server)
        let other = [AuthorizedRoute(.network(NetworkRoute(address: "127.0.0.2", port: 5_000)))]
        let message = UpstreamMessage("tools/list", id: JSONNumber(1))

        #expect(await !transport.isUsable(over: other))
        await #expect(throws: AppError.unwritten) {
            _ = try await transport.exchange(message, by: other, handler: UpstreamMessageHandler())
        }
    }

    @Test func `a method other than those of tools is unknown`() async throws {
        let transport = try transport(.shipped("app-debug"), to: .appDebug())

        await #expect(throws: RPCError.methodNotFound("resources/list")) {
            _ = try await Self.ask(transport, "resources/list")
        }
    }

    @Test func `an error of the server names the endpoint, the tool and the request`() async throws {
        let server = PlainServer { _, _ in .json("{}", status: 500) }
        let transport = try transport(.shipped("app-debug"), to: server)

        let result = try await Self.ask(transport, "tools/call", ["name": "list_actions"])

        #expect(
            result["content"]?.array?.first?["text"]?.string?
                .hasPrefix("shop: list_actions (GET /actions): HTTP status 500") == true,
            "\(result)"
        )
    }

    @Test func `a response that cannot be used names the tool and the request`() async throws {
        let server = PlainServer { _, _ in .json("[") }
        let transport = try transport(.shipped("app-debug"), to: server)

        await #expect(
            throws: AppError.invalidResponse("invalid JSON (unexpected end, at byte 1) to list_actions (GET /actions)")
        ) { try await Self.ask(transport, "tools/call", ["name": "list_actions"]) }
    }

    @Test(
        arguments: [("initialize", nil, 5), ("tools/call", nil, 15), ("tools/call", 90, 90), ("tools/call", 3, 15)]
            as [(String, Int?, Int)]
    )
    func `an app at a breakpoint times out with the profile's explanation, and a caller may wait longer`(
        method: String,
        timeout: Int?,
        seconds: Int
    ) async throws {
        let profile = try Profile.shipped("app-debug")
        let server = PlainServer { _, _ in .silence }
        let transport = try transport(profile, to: server)

        try await withThrowingTaskGroup(of: Void.self) { group in
            group.addTask {
                await #expect(throws: AppError.timedOut(seconds: seconds, cause: profile.timeoutHint)) {
                    _ = try await Self.ask(
                        transport,
                        method,
                        ["name": "app_state"],
                        timeout: timeout.map { .seconds($0) }
                    )
                }
            }
            try await eventually("the server is asked") { !server.requests.isEmpty }
            await clock.waitForSleepers()
            clock.advance(by: .seconds(seconds))
            try await group.waitForAll()
        }
    }

    @Test func `the functions that a server lists are tools beside those of the profile`() async throws {
        let profile = try Profile(
            parsing: """
                name = "functions"
                [authentication]
                type = "bearer"
                [[recognition]]
                path = "/functions"
                status = 401
                json = { type = "object", required = ["error"] }
                [functions]
                list = { path = "/functions" }
                pointer = "/functions"
                call = { method = "POST", path = "/call", body = '{"name": "{function}", "arguments": "{arguments}"}' }
                """,
            file: "functions.toml"
        )
        let server = PlainServer { line, request in
            guard request.contains("Authorization: Bearer T\r\n") else { return .json(#"{"error":"no"}"#, status: 401) }
            return line == "POST /call" ? .json(#"{"done":true}"#) : .json(#"{"functions":[{"name":"reset"}]}"#)
        }
        let transport = try transport(profile, to: server)

        _ = try await Self.ask(transport, "initialize", secret: "T")
        let result = try await Self.ask(
            transport,
            "tools/call",
            ["name": "reset", "arguments": ["hard": true]],
            secret: "T"
        )
        let list = try await Self.ask(transport, "tools/list", secret: "T")

        #expect(result["structuredContent"] == ["done": true])
        #expect(list["tools"]?.array?.compactMap { $0["name"]?.string } == ["reset"])
        #expect(server.lines == ["GET /functions", "GET /functions", "POST /call", "GET /functions"])
        #expect(server.requests[2].hasSuffix(#"{"name":"reset","arguments":{"hard":true}}"#))
    }

    @Test func `an existing session of WebDriverAgent is shared, and a lost one is replaced`() async throws {
        let server = PlainServer { line, _ in
            line == "GET /status"
                ? .json(#"{"value":{"ready":true},"sessionId":"theirs"}"#) : .json(#"{"value":{"width":390}}"#)
        }
        let transport = try transport(.shipped("webdriveragent"), to: server)

        let first = try await Self.ask(transport, "tools/call", ["name": "window_size"])
        #expect(first["structuredContent"] == ["width": 390])
        #expect(server.lines == ["GET /status", "GET /session/theirs/window/size"])
        server.relaunch(
            as: PlainServer { line, _ in
                switch line {
                case "GET /status": .json(#"{"value":{"ready":true},"sessionId":null}"#)
                case "GET /session/theirs/window/size":
                    .json(#"{"value":{"error":"invalid session id"}}"#, status: 404)
                case "POST /session": .json(#"{"value":{"sessionId":"ours"}}"#)
                default: .json(#"{"value":{"width":430}}"#)
                }
            }
        )
        let second = try await Self.ask(transport, "tools/call", ["name": "window_size"])

        #expect(second["structuredContent"] == ["width": 430])
        #expect(
            server.lines[2...] == [
                "GET /session/theirs/window/size", "GET /status", "POST /session", "GET /session/ours/window/size",
            ]
        )
    }

    @Test func `a session is kept alive in the background, and released when no call used it for its lifetime`()
        async throws
    {
        let server = PlainServer.debugBridge(boot: "NEW") {
            $0 == "POST /auth/rotate" ? .json(#"{"error":"boot_token_invalid"}"#, status: 401) : nil
        }
        let transport = try transport(.shipped("debugbridge"), to: server, secret: "NEW")
        try await withThrowingTaskGroup(of: Void.self) { group in
            group.addTask { await self.tasks.run() }
            let params: JSONObject = ["name": "type", "arguments": ["text": "a"]]
            _ = try await Self.ask(transport, "tools/call", params, secret: "NEW")
            let before = server.lines.count

            try await eventually("a heartbeat is sent, and the session is released") {
                clock.advance(by: .seconds(10))
                return server.lines.count > before + 1
            }

            #expect(server.lines[before...] == ["POST /session/heartbeat", "POST /session/release"])
            #expect(server.requests.last?.contains("X-Session-Id: S-1\r\n") == true)
            group.cancelAll()
        }
    }
}
