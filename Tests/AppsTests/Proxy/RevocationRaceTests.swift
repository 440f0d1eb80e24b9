import AccessControl
import FoundationEssentials
import Glibc
import Model
import Registry
import Samples
import Synchronization
import SystemIO
import TestSupport
import Testing

@testable import Apps

/// Queued calls and the end of their permission.
@Suite(.scratchFolder) struct RevocationRaceTests {
    private let scratch = ScratchFolder.current
    private static let rounds = ProcessInfo.processInfo.environment["PATCHBAY_SOAK"] == "1" ? 1_000 : 60
    private static let calls = 8
    private static let owner = AuditActor.process(uid: 0, pid: 1, executable: SanitizedText("test"))
    private static let origin = RequestSource.unix(uid: 0)

    enum End: CaseIterable {
        case revocation, withdrawal
    }

    @Test(.timeLimit(.minutes(10)), arguments: End.allCases)
    func `no call is delivered after the end of its grant or of its app's approval`(end: End) async throws {
        let store = try AccessStore(in: scratch.path, logger: .quiet)
        let race = try await Self.race(end, store, AccessStoreAuthorizer(store), seed: 7)

        #expect(race.late == 0)
        // Without calls on both sides of the end, the test would prove nothing.
        #expect(race.delivered > 0 && race.delivered < Self.rounds * Self.calls, "\(race)")
    }

    @Test(.timeLimit(.minutes(10)), arguments: End.allCases)
    func `the same race detects an authorizer that checks only when a call arrives`(end: End) async throws {
        let store = try AccessStore(in: scratch.path, logger: .quiet)

        let race = try await Self.race(end, store, EarlyAuthorizer(authorizer: AccessStoreAuthorizer(store)), seed: 7)

        #expect(race.late > 0)
    }

    /// Returns the number of delivered calls and the number delivered after the end.
    private static func race(
        _ end: End,
        _ store: AccessStore,
        _ authorizer: some EndpointAuthorizer,
        seed: UInt64
    ) async throws -> (delivered: Int, late: Int) {
        let app = StalledApp()
        let registry = EndpointRegistry()
        let proxy = AppProxy(
            registry: registry,
            dialer: app,
            authorizer: authorizer,
            storage: FakeCacheStorage(),
            sizeLimiter: .sample,
            logger: .quiet
        )
        let lan = NetworkRoute(
            address: "192.168.1.20",
            port: 5_000,
            interface: "lo",
            machine: SanitizedText("phone.local")
        )
        let sighting = Sighting.sample(key: "shop", name: "shop", routes: [.network(lan)])
        await registry.apply(.seen(sighting))
        let shop = try #require(await registry.endpoint(seenAs: sighting.id))
        try await store.approvals.approve(shop, by: owner, from: origin)
        let spec = InviteSpec(Permissions([.endpointCall], on: .all))
        _ = await Self.call(shop, proxy, .sampleOwner)
        app.stopReading()

        var random = SeededGenerator(seed: seed)
        var (delivered, late) = (0, 0)
        for _ in 0..<rounds {
            let (_, invite) = try await store.invites.create(spec, by: owner, from: origin)
            let redemption = RedemptionSpec(
                token: invite.reveal(),
                client: String(repeating: "7", count: 32),
                name: SanitizedText("race")
            )
            let (grant, _) = try await store.invites.redeem(redemption, from: origin)
            try await store.approvals.approve(shop, by: owner, from: origin)
            let principal = Principal(.grant(grant), source: .unix(uid: 0), actor: .grant(grant.id))
            let tasks = (0..<calls).map { _ in Task { await Self.call(shop, proxy, principal) } }
            for _ in 0..<Int.random(in: 0..<60, using: &random) { await Task.yield() }
            // A cancelled call releases its place to a queued one at the moment of the end.
            let leaving = Int.random(in: 0...4, using: &random)
            let pause = Int.random(in: 0..<20, using: &random)
            async let _: Void = {
                for _ in 0..<pause { await Task.yield() }
                for task in tasks.prefix(leaving) { task.cancel() }
            }()
            switch end {
            case .revocation: try await store.grants.revoke(.one(grant.id), by: owner, from: origin)
            case .withdrawal: try await store.approvals.revoke(of: shop.id, by: owner, from: origin)
            }
            let before = app.deliveries
            for task in tasks {
                task.cancel()
                // Sequential, because each cancelled call admits a queued one.
                _ = await task.value
            }
            delivered += before
            late += app.deliveries - before
            app.forget()
        }
        return (delivered, late)
    }

    private static func call(_ shop: Endpoint, _ proxy: AppProxy, _ principal: Principal) async -> Bool {
        (try? await proxy.call(ToolCall("tap", of: shop, wait: .zero), of: principal)) != nil
    }
}

/// An authorizer that checks permissions only when a call arrives.
private struct EarlyAuthorizer: EndpointAuthorizer {
    let authorizer: AccessStoreAuthorizer

    func observe(_ endpoint: Endpoint) async {}
    func recordAcceptance(of secret: EndpointSecret, by endpoint: Endpoint, over routes: [AuthorizedRoute]) {}
    var generation: UInt64 { 0 }
    func isLive(_ principal: Principal) -> Bool { true }
    func deliver<Value: Sendable, Failure: Error>(
        for principal: Principal,
        since generation: UInt64,
        _ write: () throws(Failure) -> Value
    ) throws(Failure) -> Value? { try write() }
    func register(for principal: Principal, onRevoke: @escaping @Sendable () -> Void) throws -> GrantSession? { nil }
    func unregister(_ session: GrantSession) {}

    func access(to endpoint: Endpoint, for principal: Principal) async -> AuthorizedRoutes {
        await authorizer.access(to: endpoint, for: principal)
    }
    func recordSecretResult(for endpoint: Endpoint, accepted: Bool) async {}
    func storeExchangedSecret(_ secret: EndpointSecret, of endpoint: Endpoint) async throws {}
    func audit(_ event: EndpointCallEvent, by principal: Principal) async {}
    func changes() async -> AsyncStream<EndpointID> { await authorizer.changes() }
}

/// An app that answers at first and then stops reading. The kernel's buffers hold the bytes that were delivered.
private final class StalledApp: Dialer {
    private let app = ScriptedApp.appReveal()
    private let isStalled = Mutex(false)
    private let peers = Mutex<[CInt]>([])

    func stopReading() { isStalled.withLock { $0 = true } }

    /// The number of complete calls that were delivered since `forget`.
    var deliveries: Int {
        peers.withLock { peers in
            peers.count { number in
                var bytes = [UInt8](repeating: 0, count: 4_096)
                let count = recv(number, &bytes, bytes.count, CInt(MSG_PEEK) | CInt(MSG_DONTWAIT))
                return count > 0 && String(decoding: bytes[..<count], as: UTF8.self).contains("tools/call")
            }
        }
    }

    func forget() {
        peers.withLock { peers in
            for number in peers { close(number) }
            peers = []
        }
    }

    func dial(_ route: Route) async throws -> Connection {
        guard isStalled.withLock({ $0 }) else { return try await app.dial(route) }
        var numbers: [CInt] = [-1, -1]
        guard socketpair(AF_UNIX, CInt(SOCK_STREAM.rawValue | SOCK_CLOEXEC.rawValue), 0, &numbers) == 0 else {
            throw TestSupportError(call: "socketpair")
        }
        _ = fcntl(numbers[0], F_SETFL, O_NONBLOCK)
        peers.withLock { $0.append(numbers[1]) }
        return Connection(descriptor: Descriptor(owning: numbers[0]), halfClose: .propagates)
    }
}
