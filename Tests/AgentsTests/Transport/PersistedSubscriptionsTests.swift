import AccessControl
import FoundationEssentials
import Model
import Synchronization
import TestSupport
import Testing

@testable import Agents
@testable import Apps

/// Subscriptions of the session protocols across a restart.
@Suite struct PersistedSubscriptionsTests {
    private static let now = Date(timeIntervalSince1970: 1_800_000_000)

    private static func kept(
        _ session: String,
        _ addresses: [String],
        before age: TimeInterval = 0,
        holder: String = TransportFixture.principal.holder
    ) -> PersistedSubscriptions {
        PersistedSubscriptions(session: session, holder: holder, addresses: addresses, lastUsedAt: now - age)
    }

    @Test func `a stream that reconnects after a restart keeps the subscriptions of its session`() async throws {
        let key = SessionIDSigner()
        let session = try await TransportFixture(key: key).handshake()
        let sessions = SessionStore(key: key, persisted: [Self.kept(session, ["a:1", "a:2"])], now: { Self.now })
        let handler = ScriptedHandler()
        let transport = StreamableHTTPTransport(
            handler,
            sessions: sessions,
            keepAliveTimer: KeepAliveTimer(clock: ManualClock())
        )
        let headers = ["Mcp-Session-Id": [session]]
        var first = ResponseRecorder()
        // A request that is not a stream comes first.
        try await transport.serve(
            TransportFixture.call(TransportFixture.request("ping"), headers: headers),
            of: TransportFixture.principal,
            to: &first
        )
        let recorder = ResponseRecorder()

        await withTaskGroup(of: Void.self) { group in
            group.addTask {
                var recorder = recorder
                try? await transport.serve(
                    TransportFixture.call(nil, .get, headers: headers),
                    of: TransportFixture.principal,
                    to: &recorder
                )
            }
            await recorder.wait(for: "a:2")
            // Changes during the downtime are unknown, so every subscription is reported.
            let missed = recorder.messages.compactMap { $0["params"]?["uri"] }
            while handler.requests.count(where: { $0.method == "resources/subscribe" }) < 2 { await Task.yield() }
            handler.publish(.resource("a:3"))
            handler.publish(.resource("a:1"))
            while recorder.messages.count(where: { $0["params"]?["uri"] == "a:1" }) < 2 { await Task.yield() }
            group.cancelAll()

            #expect(missed == ["a:1", "a:2"])
            #expect(!recorder.text.contains("a:3"))
        }
    }

    @Test func `a URI of more than 1,024 bytes cannot be subscribed to`() async throws {
        let sessions = SessionStore(key: SessionIDSigner(), now: { Self.now })
        let session = SessionStore.Session(id: "s", holder: "h")
        let longest = String(repeating: "ü", count: PersistedSubscriptions.lengthLimit / 2)

        try await sessions.subscribe(longest, of: session)
        let error = await #expect(throws: RPCError.self) { try await sessions.subscribe(longest + "x", of: session) }

        #expect(error?.message.contains("at most 1024 bytes") == true)
    }

    @Test func `subscriptions are saved after each change and when the broker stops`() async throws {
        let kept = Mutex<[PersistedSubscriptions]>([])
        let sessions = SessionStore(key: SessionIDSigner(), now: { Self.now }) { all in kept.withLock { $0 = all } }
        let session = SessionStore.Session(id: "s", holder: "h")

        await withTaskGroup(of: Void.self) { group in
            group.addTask { try? await sessions.run() }
            try? await sessions.subscribe("a:1", of: session)
            while kept.withLock({ $0.isEmpty }) { await Task.yield() }
            await sessions.unsubscribe("a:1", of: session)
            try? await sessions.subscribe("a:2", of: session)
            group.cancelAll()
        }

        #expect(kept.withLock { $0 } == [Self.kept("s", ["a:2"], holder: "h")])
    }

    @Test func `saved subscriptions with a forged session ID are ignored`() async {
        let sessions = SessionStore(
            key: SessionIDSigner(),
            persisted: [Self.kept("forged.2025-11-25.x", ["a:1"])],
            now: { Self.now }
        )

        let session = SessionStore.Session(id: "forged.2025-11-25.x", holder: TransportFixture.principal.holder)

        #expect(await sessions.subscriptions(of: session).isEmpty)
    }

    @Test func `saved subscriptions are limited, and the last used sessions come first`() {
        let many = (0..<300).map { Self.kept("\($0)", ["a:1"], before: TimeInterval($0)) }
        let large = (0..<20).map { Self.kept("\($0)", (0..<256).map { "a:\($0)" }, before: TimeInterval($0)) }
        let old = Self.kept("old", ["a:1"], before: PersistedSubscriptions.lifetime)

        #expect(PersistedSubscriptions.selection(of: many.reversed(), at: Self.now) == Array(many.prefix(256)))
        #expect(PersistedSubscriptions.selection(of: large, at: Self.now).count == 16)
        #expect(PersistedSubscriptions.selection(of: [old, Self.kept("none", [])], at: Self.now).isEmpty)
    }
}
