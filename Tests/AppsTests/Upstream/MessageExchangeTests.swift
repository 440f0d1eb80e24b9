import Model
import Samples
import SystemIO
import Testing

@testable import Apps

@Suite struct MessageExchangeTests {
    private static let route = Route.network(NetworkRoute(address: "127.0.0.1", port: 1))
    private static let request = RPCRequest(id: .number(JSONNumber(1)), method: "x")

    private static func answer(
        _ reply: ScriptedApp.Reply,
        awaiting id: RPCID? = request.id,
        limits: ResponseLimits = ResponseLimits(),
        budget: LargeResponseBudget = LargeResponseBudget()
    ) async throws -> UpstreamResponse {
        let app = ScriptedApp { _ in reply }
        let (shop, clock): (EndpointID, PollerClock) = ("shop", PollerClock())
        let pool = ConnectionPool(
            to: shop,
            dialer: app,
            clock: clock,
            watch: ElapsedTimer(clock),
            tasks: BackgroundTasks(),
            largeResponses: budget
        )
        var exchange = HTTPExchange(
            AppHTTPRequest(
                "POST",
                "/",
                accept: "application/json, text/event-stream",
                body: RPCMessage.request(request).json.bytes
            ),
            over: AppConnection(over: route, try await app.dial(route)),
            limits: limits,
            clock: clock,
            reserve: { try await pool.reserve($0, for: $1, over: $2, within: $3) }
        )
        let decoder = ServerMessageDecoder(redactor: TokenRedactor([]), record: { _ in })
        return try await exchange.response(to: id, decoder: decoder) { _ in }
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

    @Test(arguments: [false, true])
    func `a large response counts until it is released, and a small one does not count`(isStream: Bool) async throws {
        let budget = LargeResponseBudget()
        let large = JSON.string(String(repeating: "x", count: 3_000_000))
        let reply = isStream ? ScriptedApp.Reply.stream([], then: ["x": large]) : .result(["x": large])

        let response = try await Self.answer(reply, budget: budget)

        #expect(response.outcome == .success(["x": large]))
        #expect((3_000_000...5_000_000).contains(budget.reserved))
        #expect(try await Self.answer(.result(["x": 1]), budget: budget).reservation == nil)
        response.reservation?.release()
        #expect(budget.reserved == 0)
    }

    @Test func `an event of another type than a message is ignored`() async throws {
        let stream = "HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nConnection: close\r\n\r\n"
        let pings = "event: ping\ndata: still here\n\nevent: ping\ndata: {\"time\":1}\n\n"
        let answer = #"data: {"jsonrpc":"2.0","id":1,"result":{"x":1}}"# + "\n\n"

        #expect(try await Self.answer(.raw(stream + pings + answer)).outcome == .success(["x": 1]))
        await #expect(throws: AppError.self) { _ = try await Self.answer(.raw(stream + "data: {\"id\":\n\n" + answer)) }
    }

    @Test func `an error status keeps its text and the time of the next attempt`() async throws {
        let plain = try await Self.answer(.http(429, ["Retry-After: 30"], "slow down"))
        #expect(throws: AppError.invalidResponse("status 429, \"slow down\", Retry-After: 30 s")) {
            try plain.validate(by: [])
        }
        let json = try await Self.answer(.http(403, [], #"{"error":"boom"}"#))
        #expect(throws: AppError.invalidResponse("status 403, \"{\"error\":\"boom\"}\"")) { try json.validate(by: []) }
        await #expect(throws: AppError.invalidResponse("status 503, Retry-After: 30 s")) {
            _ = try await Self.answer(.http(503, ["Retry-After: 30"], ""))
        }
    }

    @Test(arguments: ["null", "[1]", "{}", "true"])
    func `a result without the request's ID is not the response`(id: String) async throws {
        let body = #"{"jsonrpc":"2.0","id":\#(id),"result":{"x":1}}"#

        await #expect(throws: AppError.self) { _ = try await Self.answer(.http(200, [], body)) }
    }

    @Test func `an error with an ID that is no ID is not the response`() async throws {
        let body = #"{"jsonrpc":"2.0","id":[1],"error":{"code":1,"message":"no"}}"#

        await #expect(throws: AppError.self) { _ = try await Self.answer(.http(200, [], body)) }
    }

    @Test func `an error that is a text keeps the text, and a null error beside a result is none`() async throws {
        let text = try await Self.answer(.http(200, [], #"{"jsonrpc":"2.0","id":1,"error":"boom"}"#))
        let empty = try await Self.answer(.http(200, [], #"{"jsonrpc":"2.0","id":1,"error":{"code":7}}"#))
        let result = try await Self.answer(.http(200, [], #"{"jsonrpc":"2.0","id":1,"error":null,"result":{"x":1}}"#))

        #expect(text.outcome == .failure(RPCError(-32_603, "boom")))
        #expect(empty.outcome == .failure(RPCError(7, "the server gave no reason")))
        #expect(result.outcome == .success(["x": 1]))
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
