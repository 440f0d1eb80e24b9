import AccessControl
import Model
import Samples
import TestSupport
import Testing

@testable import Apps

@Suite struct SuspendedRequestTests {
    private static func key(
        _ principal: Principal = .holder(of: "one", []),
        params: JSONObject = [:]
    ) throws -> SuspendedRequestStore.Key {
        let shop: EndpointID = "shop"
        return SuspendedRequestStore.Key(MCPRequest("tools/call", params), at: shop, of: principal)
    }

    @Test func `a question is returned by next, and its answer is returned to the app`() async throws {
        let request = SuspendedRequest()
        async let answer = request.ask("elicitation/create", ["message": "?"])

        guard case .inputRequired(let requests) = try await request.next() else {
            throw TestSupportError("no question was returned")
        }
        #expect(requests == ["q1": ["method": "elicitation/create", "params": ["message": "?"]]])
        // A question without an answer is asked again.
        request.provideAnswers([:], notify: nil)
        guard case .inputRequired(requests) = try await request.next() else {
            throw TestSupportError("the question was not asked again")
        }
        request.provideAnswers(["q1": ["action": "accept"]], notify: nil)

        #expect(await answer == .success(["action": "accept"]))
        request.complete(.success(["content": []]))
        guard case .completed(let result) = try await request.next() else {
            throw TestSupportError("no result was returned")
        }
        #expect(try result.get() == ["content": []])
    }

    @Test func `a suspended request is resumed once, by the same principal with the same request`() throws {
        var store = SuspendedRequestStore()
        let (state, _) = try store.save(SuspendedRequest(), for: Self.key(), at: .zero)

        #expect(throws: RPCError.self) { try store.resume(state, for: Self.key(.holder(of: "two", []))) }
        #expect(throws: RPCError.self) { try store.resume(state, for: Self.key(params: ["a": 1])) }
        #expect(throws: RPCError.self) { try store.resume(SuspendedRequestStore.prefix + "x", for: Self.key()) }
        _ = try store.resume(state, for: Self.key())
        #expect(throws: RPCError.self) { try store.resume(state, for: Self.key()) }
    }

    @Test func `suspended requests are limited in number and expire`() throws {
        var store = SuspendedRequestStore()
        let states = try (1...SuspendedRequestStore.limitPerHolder).map { _ in
            try store.save(SuspendedRequest(), for: Self.key(), at: .zero).state
        }

        #expect(Set(states).count == states.count)
        #expect(throws: RPCError.self) { try store.save(SuspendedRequest(), for: Self.key(), at: .seconds(299)) }
        _ = try store.save(SuspendedRequest(), for: Self.key(.holder(of: "two", [])), at: .seconds(299))
        let expired = try store.save(SuspendedRequest(), for: Self.key(), at: .seconds(300)).expired
        #expect(expired.count == SuspendedRequestStore.limitPerHolder)
        #expect(throws: RPCError.self) { try store.resume(states[0], for: Self.key()) }
    }
}
