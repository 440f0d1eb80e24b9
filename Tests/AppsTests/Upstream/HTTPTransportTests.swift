import AccessControl
import Model
import Samples
import SystemIO
import Testing

@testable import Apps

@Suite struct HTTPTransportTests {
    private static let routes = [AuthorizedRoute(.network(NetworkRoute(address: "127.0.0.1", port: 5_000)))]

    private let app = ScriptedApp { _ in .result(["content": []]) }

    private func makeTransport() throws -> HTTPTransport {
        let id: EndpointID = "shop"
        let clock = PollerClock()
        let watch = ElapsedTimer(clock)
        let pool = ConnectionPool(to: id, dialer: app, clock: clock, watch: watch, tasks: BackgroundTasks())
        return HTTPTransport(path: "/mcp", pool: pool)
    }

    private static func send(_ method: String, over transport: HTTPTransport, mayReuse: Bool = true) async throws {
        var message = UpstreamMessage(method, id: JSONNumber(1))
        message.mayReuse = mayReuse
        _ = try await transport.exchange(message, by: routes, handler: UpstreamMessageHandler())
    }

    @Test func `a kept connection carries the next message`() async throws {
        app.keepConnections()
        let transport = try makeTransport()

        try await Self.send("one", over: transport)
        try await Self.send("two", over: transport)

        #expect(app.dials.count == 1)
        #expect(app.requests.allSatisfy { $0.head.hasPrefix("POST /mcp ") })
    }

    @Test func `a message that must not be delivered twice uses a new connection`() async throws {
        app.keepConnections()
        let transport = try makeTransport()

        try await Self.send("one", over: transport)
        try await Self.send("two", over: transport, mayReuse: false)

        #expect(app.dials.count == 2)
    }

    @Test func `an app that refuses connections is unreachable, and the next message dials again`() async throws {
        app.set(isUp: false)
        let transport = try makeTransport()

        await #expect(throws: AppError.unreachable(DialError(.refused, "nothing listens on \(Self.routes[0].route)"))) {
            try await Self.send("one", over: transport)
        }
        app.set(isUp: true)
        try await Self.send("two", over: transport)

        #expect(app.requests.map(\.method) == ["two"])
    }
}
