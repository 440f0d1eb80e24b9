import AccessControl
import Model
import Samples
import SystemIO
import TestSupport
import Testing

@testable import Apps

@Suite struct SuspendedCallTests {
    private static func key(
        _ principal: Principal = .holder(of: "one", []),
        params: JSONObject = [:]
    ) throws -> SuspendedCallTable.Key {
        let shop: EndpointID = "shop"
        return SuspendedCallTable.Key(MCPRequest("tools/call", params), at: shop, of: principal)
    }

    @Test func `a question is returned by next, and its answer is returned to the app`() async throws {
        let call = SuspendedCall()
        async let answer = call.ask(SuspendedRequest("elicitation/create", ["message": "?"]))

        guard case .inputRequired(let requests) = try await call.next() else {
            throw TestSupportError("no question was returned")
        }
        #expect(requests == ["q1": ["method": "elicitation/create", "params": ["message": "?"]]])
        // A question without an answer is asked again.
        call.provideAnswers([:], notify: nil)
        guard case .inputRequired(requests) = try await call.next() else {
            throw TestSupportError("the question was not asked again")
        }
        call.provideAnswers(["q1": ["action": "accept"]], notify: nil)

        #expect(await answer == .success(["action": "accept"]))
        call.complete(.success(["content": []]))
        guard case .completed(let result) = try await call.next() else {
            throw TestSupportError("no result was returned")
        }
        #expect(try result.get() == ["content": []])
    }

    @Test func `a suspended request is resumed once, by the same principal with the same request`() throws {
        var table = SuspendedCallTable()
        let state = try table.save(SuspendedCall(), for: Self.key(), at: .zero)

        #expect(throws: RPCError.self) { try table.resume(state, for: Self.key(.holder(of: "two", []))) }
        #expect(throws: RPCError.self) { try table.resume(state, for: Self.key(params: ["a": 1])) }
        #expect(throws: RPCError.self) { try table.resume(SuspendedCallTable.prefix + "x", for: Self.key()) }
        _ = try table.resume(state, for: Self.key())
        #expect(throws: RPCError.self) { try table.resume(state, for: Self.key()) }
    }

    @Test func `suspended requests are limited in number and expire`() throws {
        var table = SuspendedCallTable()
        let calls = (1...SuspendedCallTable.limitPerHolder).map { _ in SuspendedCall() }
        let refused = SuspendedCall()
        let states = try calls.map { try table.save($0, for: Self.key(), at: .zero) }

        #expect(Set(states).count == states.count)
        #expect(throws: RPCError.self) { try table.save(refused, for: Self.key(), at: .seconds(299)) }
        _ = try table.save(SuspendedCall(), for: Self.key(.holder(of: "two", [])), at: .seconds(299))
        #expect(refused.abandoned.isCompleted && !calls.contains { $0.abandoned.isCompleted })
        _ = try table.save(SuspendedCall(), for: Self.key(), at: .seconds(300))
        #expect(calls.allSatisfy { $0.abandoned.isCompleted })
        #expect(throws: RPCError.self) { try table.resume(states[0], for: Self.key()) }
    }
}
