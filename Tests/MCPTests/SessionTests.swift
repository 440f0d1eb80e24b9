import JSON
import Model
import Testing

@testable import MCP

@Suite struct SessionTests {
    @Test func `a session goes on after a restart, and is never answered with 404`() async throws {
        let key = SessionIDSigner()
        let session = try await DoorBench(key: key).handshake("2025-06-18")
        let restarted = DoorBench(key: key)

        let list = DoorBench.call(DoorBench.request("tools/list"), headers: ["Mcp-Session-Id": [session]])
        let end = DoorBench.call(nil, .delete, headers: ["Mcp-Session-Id": [session]])

        #expect(try await restarted.json(list).status == 200)
        #expect(try await restarted.json(end).status == 204)
        #expect(try await restarted.json(list).status == 200)
    }

    @Test func `an id that is not of this broker is a 404, upon which clients begin anew`() async throws {
        let stranger = try await DoorBench().handshake()
        let bench = DoorBench()
        let own = try await bench.handshake()

        for id in [
            stranger, "x", "", String(own.dropLast()), own + "A", own.replacing("2025-11-25", with: "2025-06-18"),
        ] {
            let call = DoorBench.call(DoorBench.request("tools/list"), headers: ["Mcp-Session-Id": [id]])
            let (status, json) = try await bench.json(call)
            #expect(status == 404, "\(id)")
            #expect(json?["error"]?["code"] == -32_600)
        }
    }

    @Test func `an id is visible ASCII and says its revision`() {
        let key = SessionIDSigner()

        let id = key.makeID(for: .june2025)

        #expect(id.utf8.allSatisfy { (0x21...0x7E).contains($0) })
        #expect(key.revision(of: id) == .june2025)
        #expect(key.makeID(for: .june2025) != id)
    }

    @Test func `a request is called off by its session, and by no other one`() async throws {
        let (began, begins) = AsyncStream.makeStream(of: Void.self)
        let server = ScriptedServer { _ throws(RPCError) in
            begins.yield()
            try? await Task.sleep(for: .seconds(60))
            return ["content": []]
        }
        let bench = DoorBench(server)
        let (mine, other) = (try await bench.handshake(), try await bench.handshake())
        let call = DoorBench.call(
            DoorBench.request("tools/call", ["name": "slow"], id: 5),
            headers: ["Mcp-Session-Id": [mine]]
        )
        func cancel(_ session: String) async throws {
            let body: JSON = ["jsonrpc": "2.0", "method": "notifications/cancelled", "params": ["requestId": 5]]
            let taken = try await bench.json(DoorBench.call(body, headers: ["Mcp-Session-Id": [session]]))
            #expect(taken.status == 202)
        }

        async let reply = bench.reply(to: call)
        _ = await began.first { _ in true }
        try await cancel(other)
        try await cancel(mine)

        #expect(try await reply?.status == 202)
    }

    @Test func `of another holder, the same id is another session`() async throws {
        let bench = DoorBench()
        let id = try await bench.handshake()
        let subscribe = DoorBench.call(
            DoorBench.request("resources/subscribe", ["uri": "a:b"]),
            headers: ["Mcp-Session-Id": [id]]
        )
        let thief = AgentCaller(.grant("thief"), permissions: Permissions([.registryRead], on: .all))

        #expect(try await bench.reply(to: subscribe, of: thief)?.status == 200)

        #expect(await bench.sessions.isSubscribed("a:b", bench.door.session(id, of: thief)))
        #expect(await !bench.sessions.isSubscribed("a:b", bench.door.session(id, of: DoorBench.caller)))
    }

    @Test func `sessions that nobody uses make room`() async throws {
        let desk = SessionStore(key: SessionIDSigner())
        func session(_ number: Int) -> SessionStore.Session { .init(id: "\(number)", holder: "h") }
        try await desk.subscribe("kept", of: session(0))
        _ = await desk.open(session(0)) {}
        try await desk.subscribe("lost", of: session(1))

        for number in 2...(SessionStore.limit + 1) { await desk.touch(session(number)) }

        #expect(await desk.isSubscribed("kept", session(0)))
        #expect(await !desk.isSubscribed("lost", session(1)))
    }
}
