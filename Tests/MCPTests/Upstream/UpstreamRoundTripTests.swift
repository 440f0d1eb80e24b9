import JSON
import Model
import SystemIO
import Testing

@testable import MCP

@Suite struct UpstreamRoundTripTests {
    private static let route = Route.network(NetworkRoute(address: "127.0.0.1", port: 1))
    private static let request = RPCRequest(id: .number(JSONNumber(1)), method: "x")

    private static func answer(
        _ reply: ScriptedApp.Reply,
        awaiting id: RPCID? = request.id,
        limits: ResponseLimits = ResponseLimits()
    ) async throws -> UpstreamResponse {
        let app = ScriptedApp { _ in reply }
        let connection = UpstreamConnection(over: route, try await app.dial(route))
        let httpRequest = UpstreamHTTPRequest(
            path: "/",
            route: route,
            secret: nil,
            message: RPCMessage.request(request).json
        )
        var roundTrip = UpstreamRoundTrip(awaiting: id, limits: limits, clock: PollerClock()) { _ in }
        return try await roundTrip.run(httpRequest.bytes, over: connection)
    }

    @Test(arguments: [
        ScriptedApp.Reply.result(["x": 1]), .stream([], then: ["x": 1]),
        .http(200, [], #"[{"jsonrpc":"2.0","id":7,"result":{}},{"jsonrpc":"2.0","id":1,"result":{"x":1}}]"#),
    ])
    func `a response is found in a body, on a stream and in a batch`(reply: ScriptedApp.Reply) async throws {
        #expect(try await Self.answer(reply).outcome == .success(["x": 1]))
    }

    @Test(arguments: [
        ScriptedApp.Reply.http(
            200,
            [],
            #"[{"jsonrpc":"2.0","id":1,"result":{"x":1}},{"jsonrpc":"2.0","id":1,"result":{"x":2}}]"#
        ),
        .raw(
            "HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nConnection: close\r\n\r\n"
                + #"data: {"jsonrpc":"2.0","id":1,"result":{"x":1}}"# + "\n\n"
                + #"data: {"jsonrpc":"2.0","id":1,"error":{"code":1,"message":"no"}}"# + "\n\n"
        ),
    ])
    func `the first of two responses counts`(reply: ScriptedApp.Reply) async throws {
        #expect(try await Self.answer(reply).outcome == .success(["x": 1]))
    }

    @Test func `the error for a server failure contains the response's text`() async throws {
        await #expect(throws: AppError.invalidResponse("status 500, \"oops\"")) {
            _ = try await Self.answer(.http(500, [], "oops"))
        }
        let answered = try await Self.answer(
            .http(500, [], #"{"jsonrpc":"2.0","id":1,"error":{"code":-32603,"message":"x"}}"#)
        )
        #expect(answered.outcome == .failure(RPCError(-32_603, "x")))
        #expect(try await Self.answer(.http(500, [], "oops"), awaiting: nil).status == 500)
    }

    @Test func `an error without an ID is the response to the request`() async throws {
        let body = #"{"jsonrpc":"2.0","id":null,"error":{"code":-32603,"message":"Unauthorized"}}"#

        let answer = try await Self.answer(.http(401, [], body))

        #expect(answer.status == 401)
        #expect(answer.outcome == .failure(RPCError(-32_603, "Unauthorized")))
    }

    @Test func `a response over the size limit is aborted`() async throws {
        let limits = ResponseLimits(bytes: 1_048_576)
        let large = JSON.string(String(repeating: "x", count: 2_000_000))

        for reply in [ScriptedApp.Reply.result(["x": large]), .stream([], then: ["x": large])] {
            await #expect(throws: AppError.invalidResponse("more than 1 MiB")) {
                _ = try await Self.answer(reply, limits: limits)
            }
        }
    }

    @Test(.timeLimit(.minutes(1)), arguments: [false, true])
    func `at most three large responses are in memory, and a fourth waits`(isStream: Bool)
        async throws
    {
        let large = JSON.string(String(repeating: "x", count: 3_000_000))
        let heavy = isStream ? ScriptedApp.Reply.stream([], then: ["x": large]) : .result(["x": large])
        var held: [UpstreamResponse] = []
        for _ in 0..<3 { held.append(try await Self.answer(heavy)) }
        #expect(held.allSatisfy { $0.permit != nil })
        #expect(try await Self.answer(.result(["x": 1])).permit == nil)

        async let fourth = Self.answer(heavy)
        while UpstreamRoundTrip.largeResponses.waiting == 0 { await Task.yield() }
        held.removeLast()

        #expect(try await fourth.outcome == .success(["x": large]))
    }

    @Test func `a stream that ends before the response is reported as a lost response`() async throws {
        await #expect(throws: AppError.responseLost) { _ = try await Self.answer(.drop) }
        await #expect(throws: AppError.responseLost) {
            _ = try await Self.answer(.raw("HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\n{"))
        }
    }

    @Test func `a message without a response returns after the status`() async throws {
        let answer = try await Self.answer(.http(202, [], ""), awaiting: nil)

        #expect(answer.status == 202)
        #expect(answer.outcome == nil)
    }
}
