import Model
@testable import Apps
import SystemIO
import TestSupport
import Testing

@Suite struct ProfileCheckerTests {
    private static let text = """
        name = "shop"
        session = { lifetime = 60, header = "X-Shop", acquire = { method = "POST", path = "/session" } }
        [[recognition]]
        path = "/who"
        json = { type = "object", required = ["shop"] }
        [identity.app]
        path = "/who"
        pointer = "/shop"
        [[tool]]
        name = "state"
        description = "Returns the state."
        path = "/state"
        read_only = true
        [[tool]]
        name = "picture"
        description = "Returns a picture."
        path = "/picture"
        read_only = true
        result = { type = "image" }
        [[tool]]
        name = "item"
        description = "Returns an item."
        path = "/item/{name}"
        required = ["name"]
        read_only = true
        arguments.name = { type = "string" }
        [[tool]]
        name = "cart"
        description = "Returns the cart."
        path = "/cart"
        read_only = true
        session = true
        [[tool]]
        name = "buy"
        description = "Buys everything."
        method = "POST"
        path = "/buy"
        """

    /// Checks a server with these bodies by path. The last value is the paths that were requested.
    private static func check(
        _ bodies: [String: String],
        _ text: String = Self.text
    ) async throws -> (check: ProfileCheck, paths: [String]) {
        let profile = try Profile(parsing: text, file: "shop.toml")
        let summary = ProfileSummary(name: "shop", title: "shop", ports: [], file: "shop.toml", toolCount: 5)
        return try await withScratchFolder { scratch in
            let (requests, continuation) = AsyncStream.makeStream(of: String.self)
            let server = try LoopbackServer(
                in: scratch,
                http: { path in
                    continuation.yield(path)
                    return bodies[path]
                }
            )
            let route = Route.network(NetworkRoute(address: "127.0.0.1", port: server.port))
            let check = try await ProfileChecker(dialer: NetworkPlanner()).check(profile, summary, at: route)
            continuation.finish()
            return (check, await requests.reduce(into: []) { $0.append($1) })
        }
    }

    @Test func `each request of the recognition is reported, and a mismatch ends the check`() async throws {
        let (check, paths) = try await Self.check(["/who": #"{"bank":1}"#])

        #expect(
            check.steps == [
                ProfileCheck.Step(request: "GET /who", status: 200, mismatch: "other JSON: \"shop\" is missing")
            ]
        )
        #expect(check.server == nil && check.tools.isEmpty && paths == ["/who"])
    }

    @Test func `the read-only tools of a recognised server are called, if they need nothing`() async throws {
        let (check, paths) = try await Self.check([
            "/who": #"{"shop":"com.example.shop"}"#, "/state": "{}", "/picture": "x",
        ])

        #expect(check.steps.map(\.mismatch) == [nil])
        #expect(check.server?.app?.text == "com.example.shop")
        #expect(check.tools.map(\.name) == ["state", "picture", "item", "cart"])
        #expect(check.tools.map(\.outcome) == [.answered, .failed, .skipped, .skipped])
        #expect(
            check.tools.map(\.reason) == [
                nil, "it answers with 1 bytes that are no image", "it needs arguments",
                "it needs a session",
            ]
        )
        #expect(paths == ["/who", "/state", "/picture"])
    }

    @Test func `an error of the server is the reason of a failed tool`() async throws {
        let (check, _) = try await Self.check(["/who": #"{"shop":"x"}"#])

        #expect(check.tools[0].outcome == .failed && check.tools[0].status == 404)
        #expect(check.tools[0].reason?.hasPrefix("HTTP status 404") == true)
    }

    @Test func `no tool of a server with a secret is called`() async throws {
        let text = Self.text.replacing("[[recognition]]", with: "[authentication]\ntype = \"bearer\"\n[[recognition]]")
        let (check, paths) = try await Self.check(["/who": #"{"shop":"x"}"#], text)

        #expect(check.tools.allSatisfy { $0.outcome == .skipped && $0.reason == "it needs the app's token" })
        #expect(paths == ["/who"])
    }

    @Test func `a port in use is not checked`() async throws {
        let profile = try Profile(parsing: Self.text, file: "shop.toml")
        let summary = ProfileSummary(name: "shop", title: "shop", ports: [], file: "shop.toml", toolCount: 5)
        let dialer = FakeDialer.silent()
        let checker = ProfileChecker(dialer: dialer, isInUse: { _ in true })
        let route = Route.network(NetworkRoute(address: "127.0.0.1", port: 1))

        await #expect(throws: PortInUse.self) { try await checker.check(profile, summary, at: route) }
        #expect(dialer.routes.isEmpty)
    }
}
