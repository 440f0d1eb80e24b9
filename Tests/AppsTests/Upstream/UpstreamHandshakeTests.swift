import AccessControl
import Model
import SystemIO
import Testing

@testable import Apps

@Suite struct UpstreamHandshakeTests {
    /// Performs the handshake with an app of kind `mcp`.
    private static func connect(
        _ dialer: any Dialer,
        source: Sighting.Source = .config,
        parameters: ClientSessionParameters? = nil,
        logLevel: JSON? = nil
    ) async throws -> (ServerInfo, any UpstreamTransport) {
        let app = try #require(await AppProxyFixture(dialer).appear(kind: .mcp, source: source))
        let clock = PollerClock()
        let pool = ConnectionPool(
            to: app.id,
            dialer: dialer,
            clock: clock,
            watch: ElapsedTimer(clock),
            tasks: BackgroundTasks()
        )
        let handshake = UpstreamHandshake(
            pool: pool,
            routes: app.routes.map { AuthorizedRoute($0.route) },
            clientParameters: parameters,
            logLevel: logLevel,
            limits: ResponseLimits(),
            handler: UpstreamMessageHandler()
        )
        return try await handshake.run(with: app)
    }

    private static func server(at path: String, isStateless: Bool) -> ScriptedApp {
        ScriptedApp { request in
            guard request.head.hasPrefix("POST \(path) ") else { return .http(404, [], "Not Found") }
            switch request.method {
            case "server/discover" where isStateless: return .result(["supportedVersions": ["2026-07-28"]])
            case "initialize": return .result(["protocolVersion": "2025-06-18", "serverInfo": ["name": "x"]])
            case "logging/setLevel": return .result([:])
            case let method where method.hasPrefix("notifications/"): return .http(202, [], "")
            default: return .error(-32_601, "Method not found")
            }
        }
    }

    @Test func `a server without stateless mode is asked for a session at the same path`() async throws {
        let app = Self.server(at: "/", isStateless: false)

        let (server, transport) = try await Self.connect(app)

        #expect(server.protocolVersion == .v2025_06_18)
        #expect(server.transport == .http(path: "/"))
        #expect((transport as? HTTPTransport)?.path == "/")
        #expect(app.requests.suffix(3).map(\.method) == ["server/discover", "initialize", "notifications/initialized"])
    }

    @Test func `a server with stateless mode gets no initialize`() async throws {
        let app = Self.server(at: "/mcp", isStateless: true)

        let (server, _) = try await Self.connect(app)

        #expect(server.protocolVersion == .v2026_07_28)
        #expect(app.requests.map(\.method) == ["server/discover"])
    }

    @Test func `a client session skips the search and restores the log level`() async throws {
        let app = Self.server(at: "/api", isStateless: true)
        let parameters = ClientSessionParameters(
            path: "/api",
            protocolVersion: .v2025_06_18,
            capabilities: ClientCapabilities([:])
        )

        _ = try await Self.connect(app, parameters: parameters, logLevel: "error")

        #expect(app.requests.map(\.method) == ["initialize", "notifications/initialized", "logging/setLevel"])
        #expect(app.requests.last?.body["params"]?["level"] == "error")
    }

    @Test func `a Bonjour server with lines is detected at the first connection`() async throws {
        let app = ScriptedLines.legacy { _ in .silence }

        let (server, transport) = try await Self.connect(app, source: .bonjour)

        #expect(server.transport == .lines)
        #expect(transport is LineTransport)
        #expect(app.dials == 1)
    }

    @Test(arguments: [
        ("path=/api", ["/api", "/mcp", "/"]), ("mcp_path=api", ["/api", "/mcp", "/"]), ("path=/mcp", ["/mcp", "/"]),
        ("path=/a b", ["/mcp", "/"]), ("x=y", ["/mcp", "/"]),
    ])
    func `an advertised path is tried first if it is valid`(item: String, paths: [String]) {
        let txt = TXTRecord(items: [Array(item.utf8)])

        #expect(UpstreamHandshake.paths(of: .mcp, txt) == paths)
        #expect(UpstreamHandshake.paths(of: .appreveal, txt) == ["/"])
    }
}
