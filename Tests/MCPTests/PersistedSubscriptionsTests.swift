import FoundationEssentials
import JSON
import Synchronization
import Testing

@testable import MCP

/// What clients of the handshake's eras subscribed to, over a restart.
@Suite struct PersistedSubscriptionsTests {
    private static let now = Date(timeIntervalSince1970: 1_800_000_000)

    private static func kept(
        _ session: String,
        _ addresses: [String],
        before age: TimeInterval = 0,
        holder: String = DoorBench.caller.holder
    ) -> PersistedSubscriptions {
        PersistedSubscriptions(session: session, holder: holder, addresses: addresses, lastUsed: now - age)
    }

    @Test func `a stream that comes back after a restart goes on with what its session subscribed to`() async throws {
        let key = SessionIDSigner()
        let session = try await DoorBench(key: key).handshake()
        let sessions = SessionStore(key: key, kept: [Self.kept(session, ["a:1", "a:2"])], now: { Self.now })
        let server = ScriptedServer()
        let door = StreamableHTTPTransport(server, sessions: sessions, heartbeat: KeepAliveTimer(clock: StillClock()))
        let headers = ["Mcp-Session-Id": [session]]
        var first = Answers()
        // Something else comes first, which is no stream.
        try await door.serve(
            DoorBench.call(DoorBench.request("ping"), headers: headers),
            of: DoorBench.caller,
            to: &first
        )
        let answers = Answers()

        await withTaskGroup(of: Void.self) { group in
            group.addTask {
                var answers = answers
                try? await door.serve(DoorBench.call(nil, .get, headers: headers), of: DoorBench.caller, to: &answers)
            }
            await answers.waits(for: "a:2")
            // What happened meanwhile, nobody knows.
            let missed = answers.messages.compactMap { $0["params"]?["uri"] }
            while server.requests.count < 2 { await Task.yield() }
            server.tell(.resource("a:3"))
            server.tell(.resource("a:1"))
            while answers.messages.count(where: { $0["params"]?["uri"] == "a:1" }) < 2 { await Task.yield() }
            group.cancelAll()

            #expect(missed == ["a:1", "a:2"])
            #expect(!answers.text.contains("a:3"))
            #expect(server.requests.map(\.method) == ["resources/subscribe", "resources/subscribe"])
        }
    }

    @Test func `an address of more than 1,024 bytes cannot be subscribed to`() async throws {
        let desk = SessionStore(key: SessionIDSigner(), now: { Self.now })
        let session = SessionStore.Session(id: "s", holder: "h")
        let longest = String(repeating: "ü", count: PersistedSubscriptions.lengthLimit / 2)

        try await desk.subscribe(longest, of: session)
        let error = await #expect(throws: RPCError.self) { try await desk.subscribe(longest + "x", of: session) }

        #expect(error?.message.contains("at most 1024 bytes") == true)
    }

    @Test func `what is subscribed to is kept when it changes, and when the broker ends`() async throws {
        let kept = Mutex<[PersistedSubscriptions]>([])
        let desk = SessionStore(key: SessionIDSigner(), now: { Self.now }) { all in kept.withLock { $0 = all } }
        let session = SessionStore.Session(id: "s", holder: "h")

        await withTaskGroup(of: Void.self) { group in
            group.addTask { try? await desk.run() }
            try? await desk.subscribe("a:1", of: session)
            while kept.withLock({ $0.isEmpty }) { await Task.yield() }
            await desk.unsubscribe("a:1", of: session)
            try? await desk.subscribe("a:2", of: session)
            group.cancelAll()
        }

        #expect(kept.withLock { $0 } == [Self.kept("s", ["a:2"], holder: "h")])
    }

    @Test func `what somebody else says it subscribed to is nothing`() async {
        let desk = SessionStore(
            key: SessionIDSigner(),
            kept: [Self.kept("forged.2025-11-25.x", ["a:1"])],
            now: { Self.now }
        )

        let session = SessionStore.Session(id: "forged.2025-11-25.x", holder: DoorBench.caller.holder)

        #expect(await desk.subscriptions(of: session).isEmpty)
    }

    @Test func `what is kept has bounds, and the last used come first`() {
        let many = (0..<300).map { Self.kept("\($0)", ["a:1"], before: TimeInterval($0)) }
        let large = (0..<20).map { Self.kept("\($0)", (0..<256).map { "a:\($0)" }, before: TimeInterval($0)) }
        let old = Self.kept("old", ["a:1"], before: PersistedSubscriptions.lifetime)

        #expect(PersistedSubscriptions.selection(of: many.reversed(), at: Self.now) == Array(many.prefix(256)))
        #expect(PersistedSubscriptions.selection(of: large, at: Self.now).count == 16)
        #expect(PersistedSubscriptions.selection(of: [old, Self.kept("none", [])], at: Self.now).isEmpty)
    }
}
