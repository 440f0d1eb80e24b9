import Model
import TestSupport
import Testing

@testable import Agents
@testable import Apps

@Suite struct ResponseEventsTests {
    private let events = ResponseEvents()

    private static func progress(_ token: String, _ value: Int) -> RPCMessage {
        let params: JSONObject = ["progressToken": .string(token), "progress": .number(JSONNumber(value))]
        return .notification(RPCNotification(method: "notifications/progress", params: params))
    }

    private static func log(_ text: String) -> RPCMessage {
        let params: JSONObject = ["level": "info", "data": .string(text)]
        return .notification(RPCNotification(method: "notifications/message", params: params))
    }

    /// The parameters of all waiting notifications.
    private func waiting() async -> [JSONObject] {
        await events.next()?.compactMap { event in
            guard case .message(.notification(let notification)) = event else { return nil }
            return notification.params
        } ?? []
    }

    @Test func `of a burst of progress the newest arrives, for each token`() async {
        for value in 1...10_000 {
            _ = events.send(Self.progress("a", value))
            if value <= 3 { _ = events.send(Self.progress("b", value)) }
        }

        let params = await waiting()

        #expect(params.last { $0["progressToken"] == "a" }?["progress"] == 10_000)
        #expect(params.count { $0["progressToken"] == "a" } == ResponseEvents.limit)
        #expect(params.filter { $0["progressToken"] == "b" }.map { $0["progress"] } == [1, 2, 3])
    }

    @Test func `log messages have a limit of their own, and a line says how many are missing`() async {
        for value in 1...1_000 { _ = events.send(Self.progress("a", value)) }
        for number in 1...1_000 { _ = events.send(Self.log("\(number)")) }

        let logs = await waiting().filter { $0["level"] != nil }

        #expect(logs.count == ResponseEvents.limit + 1)
        #expect(logs.first?["data"] == "1")
        #expect(logs.last?["logger"] == "patchbay")
        #expect(logs.last?["data"]?.string?.hasPrefix("744 log messages are missing") == true)
    }

    @Test func `a request to the client has room during a burst`() async {
        for number in 1...1_000 {
            _ = events.send(Self.log("\(number)"))
            _ = events.send(Self.progress("a", number))
        }

        #expect(events.send(.request(RPCRequest(id: .text("1"), method: "roots/list"))))
    }

    @Test func `the reader gets what waits before the end, and nothing after it`() async {
        _ = events.send(Self.log("last"))
        events.finish()

        #expect(!events.send(Self.log("late")))
        #expect(await waiting().map { $0["data"] } == ["last"])
        #expect(await events.next() == nil)
    }

    @Test func `a waiting reader gets a message, a comment and the end`() async throws {
        async let first = events.next()
        _ = events.send(Self.log("one"))
        #expect(await first?.count == 1)
        async let second = events.next()
        events.keepAlive()
        #expect(await second?.count == 1)
        async let third = events.next()
        events.finish()
        #expect(await third == nil)
    }
}
