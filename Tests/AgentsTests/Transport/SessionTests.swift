import AccessControl
import Model
import Samples
import Testing

@testable import Agents
@testable import Apps

@Suite struct SessionTests {
    @Test func `a session stays valid after a restart`() async throws {
        let key = SessionIDSigner()
        let session = try await TransportFixture(key: key).handshake("2025-06-18")
        let restarted = TransportFixture(key: key)

        let list = TransportFixture.call(TransportFixture.request("tools/list"), headers: ["Mcp-Session-Id": [session]])

        #expect(try await restarted.json(list).status == 200)
    }

    @Test(arguments: ProtocolVersion.allCases.filter { !$0.isStateless })
    func `every request of a session that its client has ended gets 404, and its other sessions continue`(
        version: ProtocolVersion
    ) async throws {
        let fixture = TransportFixture()
        let (ended, other) = (
            try await fixture.handshake(version.rawValue), try await fixture.handshake(version.rawValue)
        )
        func status(_ body: JSON?, _ method: MCPHTTPRequest.Method = .post, of session: String) async throws -> Int {
            try await fixture.json(TransportFixture.call(body, method, headers: ["Mcp-Session-Id": [session]])).status
        }
        let list = TransportFixture.request("tools/list")
        #expect(try await status(list, of: ended) == 200)

        #expect(try await status(nil, .delete, of: ended) == 204)

        let initialized: JSON = ["jsonrpc": "2.0", "method": "notifications/initialized"]
        #expect(try await status(list, of: ended) == 404)
        #expect(try await status(initialized, of: ended) == 404)
        #expect(try await status(nil, .get, of: ended) == 404)
        #expect(try await status(nil, .delete, of: ended) == 404)
        #expect(try await status(list, of: other) == 200)
    }

    @Test func `the oldest ends are forgotten at the limit`() {
        let ended = EndedSessions()
        func session(_ number: Int) -> SessionStore.Session { .init(id: "\(number)", holder: "h") }

        for number in 0...EndedSessions.limit {
            ended.insert(session(number))
            ended.insert(session(number))
        }

        #expect(!ended.contains(session(0)))
        #expect(ended.contains(session(1)) && ended.contains(session(EndedSessions.limit)))
        ended.insert(session(-1))
        #expect(!ended.contains(session(1)) && ended.contains(session(2)) && ended.contains(session(-1)))
    }

    @Test func `an ID is visible ASCII and contains its protocol version`() {
        let key = SessionIDSigner()

        let id = key.makeID(for: .v2025_06_18)

        #expect(id.utf8.allSatisfy { (0x21...0x7E).contains($0) })
        #expect(key.version(of: id) == .v2025_06_18)
        #expect(key.makeID(for: .v2025_06_18) != id)
    }

    @Test func `only the session of a request can cancel it`() async throws {
        let (began, begins) = AsyncStream.makeStream(of: Void.self)
        let handler = ScriptedHandler { _ throws(RPCError) in
            begins.yield()
            try? await Task.sleep(for: .seconds(60))
            return ["content": []]
        }
        let fixture = TransportFixture(handler)
        let (mine, other) = (try await fixture.handshake(), try await fixture.handshake())
        let call = TransportFixture.call(
            TransportFixture.request("tools/call", ["name": "slow"], id: 5),
            headers: ["Mcp-Session-Id": [mine]]
        )
        func cancel(_ session: String) async throws {
            let body: JSON = ["jsonrpc": "2.0", "method": "notifications/cancelled", "params": ["requestId": 5]]
            let taken = try await fixture.json(TransportFixture.call(body, headers: ["Mcp-Session-Id": [session]]))
            #expect(taken.status == 202)
        }

        async let reply = fixture.reply(to: call)
        _ = await began.first { _ in true }
        try await cancel(other)
        try await cancel(mine)

        #expect(try await reply?.status == 202)
    }

    @Test func `the same ID of another holder is another session`() async throws {
        let fixture = TransportFixture()
        let id = try await fixture.handshake()
        let subscribe = TransportFixture.call(
            TransportFixture.request("resources/subscribe", ["uri": "a:b"]),
            headers: ["Mcp-Session-Id": [id]]
        )
        let thief = Principal.holder(of: "thief", [.registryRead])

        #expect(try await fixture.reply(to: subscribe, of: thief)?.status == 200)

        func session(of principal: Principal) -> SessionStore.Session { .init(id: id, holder: principal.holder) }
        #expect(await fixture.sessions.isSubscribed("a:b", in: session(of: thief)))
        #expect(await !fixture.sessions.isSubscribed("a:b", in: session(of: TransportFixture.principal)))

        try await fixture.sessions.subscribe("c:d", of: session(of: TransportFixture.principal))
        let end = TransportFixture.call(nil, .delete, headers: ["Mcp-Session-Id": [id]])
        #expect(try await fixture.reply(to: end, of: thief)?.status == 204)

        #expect(await fixture.sessions.isSubscribed("c:d", in: session(of: TransportFixture.principal)))
        #expect(await !fixture.sessions.isSubscribed("a:b", in: session(of: thief)))
    }

    @Test func `idle sessions are removed at the limit`() async throws {
        let sessions = SessionStore(key: SessionIDSigner())
        func session(_ number: Int) -> SessionStore.Session { .init(id: "\(number)", holder: "h") }
        try await sessions.subscribe("kept", of: session(0))
        _ = await sessions.openStream(of: session(0)) {}
        try await sessions.subscribe("lost", of: session(1))

        for number in 2...(SessionStore.limit + 1) { await sessions.touch(session(number)) }

        #expect(await sessions.isSubscribed("kept", in: session(0)))
        #expect(await !sessions.isSubscribed("lost", in: session(1)))
    }
}
