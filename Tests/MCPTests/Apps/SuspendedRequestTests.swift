import JSON
import TestSupport
import Testing

@testable import MCP

@Suite struct SuspendedRequestTests {
    private static func subject(_ holder: String = "uid:0", params: String = "{}") -> SuspendedRequestStore.Subject {
        SuspendedRequestStore.Subject(holder: holder, endpoint: "shop", method: "tools/call", params: params)
    }

    @Test func `a question is what comes next, and its answer goes back`() async throws {
        let interview = SuspendedRequest()
        async let answer = interview.ask("elicitation/create", ["message": "?"])

        guard case .asked(let requests) = try await interview.next() else { throw RigError("nothing was asked") }
        #expect(requests == ["q1": ["method": "elicitation/create", "params": ["message": "?"]]])
        // What has no answer yet is asked again.
        interview.take([:], notify: nil)
        guard case .asked(requests) = try await interview.next() else { throw RigError("it was forgotten") }
        interview.take(["q1": ["action": "accept"]], notify: nil)

        #expect(await answer == .success(["action": "accept"]))
        interview.end(.success(["content": []]))
        guard case .ended(let result) = try await interview.next() else { throw RigError("it has no end") }
        #expect(try result.get() == ["content": []])
    }

    @Test func `a request that waits is gone on with once, by the same caller and for the same thing`() throws {
        var interviews = SuspendedRequestStore()
        let (key, _) = try interviews.keep(SuspendedRequest(), Self.subject(), at: .zero)

        #expect(throws: RPCError.self) { try interviews.take(key, Self.subject("grant:x")) }
        #expect(throws: RPCError.self) { try interviews.take(key, Self.subject(params: "{\"a\":1}")) }
        #expect(throws: RPCError.self) { try interviews.take(SuspendedRequestStore.prefix + "x", Self.subject()) }
        _ = try interviews.take(key, Self.subject())
        #expect(throws: RPCError.self) { try interviews.take(key, Self.subject()) }
    }

    @Test func `few wait, and not for long`() throws {
        var interviews = SuspendedRequestStore()
        let keys = try (1...SuspendedRequestStore.limitOfOne).map { _ in
            try interviews.keep(SuspendedRequest(), Self.subject(), at: .zero).key
        }

        #expect(Set(keys).count == keys.count)
        #expect(throws: RPCError.self) { try interviews.keep(SuspendedRequest(), Self.subject(), at: .seconds(299)) }
        _ = try interviews.keep(SuspendedRequest(), Self.subject("grant:x"), at: .seconds(299))
        let old = try interviews.keep(SuspendedRequest(), Self.subject(), at: .seconds(300)).old
        #expect(old.count == SuspendedRequestStore.limitOfOne)
        #expect(throws: RPCError.self) { try interviews.take(keys[0], Self.subject()) }
    }
}
