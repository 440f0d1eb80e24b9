import FoundationEssentials
import Glibc
import Logging
import Model
import AccessControl
import Registry
import TestSupport
import SystemIO
import Synchronization
import Testing

@testable import MCP

/// Calls that wait for their turn, and the end of what allowed them.
@Suite struct RevocationRaceTests {
    private static let rounds = ProcessInfo.processInfo.environment["PATCHBAY_SOAK"] == "1" ? 1_000 : 60
    private static let calls = 8
    private static let owner = AuditActor.process(uid: 0, pid: 1, executable: SanitizedText("test"))
    private static let origin = RequestSource.unix(uid: 0)
    private static let quiet = Logger(label: "test") { _ in SwiftLogNoOpLogHandler() }

    enum End: CaseIterable {
        case revocation, withdrawal
    }

    @Test(.timeLimit(.minutes(10)), arguments: End.allCases)
    func `no call is delivered after the end of its grant or of its app's approval`(end: End) async throws {
        try await withScratchFolder { scratch in
            let store = try AccessStore(in: scratch.path, logger: Self.quiet)
            let race = try await Self.race(end, store, PairingTrust(store), seed: 7)

            #expect(race.late == 0)
            // Some calls came before the end, and some did not, or the race was none.
            #expect(race.delivered > 0 && race.delivered < Self.rounds * Self.calls, "\(race)")
        }
    }

    @Test(.timeLimit(.minutes(10)), arguments: End.allCases)
    func `the same race finds a desk out that looks only when a call comes`(end: End) async throws {
        try await withScratchFolder { scratch in
            let store = try AccessStore(in: scratch.path, logger: Self.quiet)

            let race = try await Self.race(end, store, EarlyTrust(trust: PairingTrust(store)), seed: 7)

            #expect(race.late > 0)
        }
    }

    /// How many calls reached the app, and how many of them after the end.
    private static func race(
        _ end: End,
        _ store: AccessStore,
        _ trust: some EndpointAuthorizer,
        seed: UInt64
    ) async throws -> (delivered: Int, late: Int) {
        let app = DeafApp()
        let registry = EndpointRegistry()
        let desk = AppProxy(
            registry: registry,
            dialer: app,
            trust: trust,
            memory: FakeMemory(),
            trim: { result, _, _ in result },
            logger: quiet
        )
        let lan = LANRoute(address: "192.168.1.20", port: 5_000, interface: "lo", host: SanitizedText("phone.local"))
        let sighting = Sighting(
            id: Sighting.ID(source: .bonjour, key: "shop"),
            kind: .appreveal,
            app: SanitizedText("com.example.shop"),
            appIsBundleID: true,
            name: SanitizedText("shop"),
            routes: [.lan(lan)]
        )
        await registry.apply(.seen(sighting))
        let shop = try #require(await registry.endpoint(seenAs: sighting.id))
        try await store.approve(shop, by: owner, from: origin)
        let permissions = Permissions([.endpointCall, .inviteCreate], on: .all)
        let (_, invite) = try await store.invite(InviteTerms(permissions), by: owner, from: origin)
        let (parent, _) = try await store.redeem(
            invite,
            for: Redemption(client: Data(repeating: 7, count: 32), name: SanitizedText("race")),
            from: origin
        )
        _ = await Self.call(shop, desk, AgentCaller(owner, permissions: nil))
        app.becomeDeaf()

        var random = SeededGenerator(seed: seed)
        var (delivered, late) = (0, 0)
        for round in 0..<rounds {
            let terms = InviteTerms(Permissions([.endpointCall], on: .all))
            let (grant, _) = try await store.delegate(
                under: parent.id,
                to: SanitizedText("\(round)"),
                terms,
                from: origin
            )
            try await store.approve(shop, by: owner, from: origin)
            let caller = AgentCaller(.grant(grant.id), permissions: grant.permissions)
            let tasks = (0..<calls).map { _ in Task { await Self.call(shop, desk, caller) } }
            for _ in 0..<Int.random(in: 0..<60, using: &random) { await Task.yield() }
            // A call that leaves makes room for one that waits, at the moment of the end.
            let leaving = Int.random(in: 0...4, using: &random)
            let pause = Int.random(in: 0..<20, using: &random)
            async let _: Void = {
                for _ in 0..<pause { await Task.yield() }
                for task in tasks.prefix(leaving) { task.cancel() }
            }()
            switch end {
            case .revocation: try await store.revoke(.one(grant.id), by: owner, from: origin)
            case .withdrawal: try await store.withdrawApproval(of: shop.id, by: owner, from: origin)
            }
            let before = app.deliveries
            for task in tasks {
                task.cancel()
                // One after the other: each that leaves lets in one that waits.
                _ = await task.value
            }
            delivered += before
            late += app.deliveries - before
            app.forget()
        }
        return (delivered, late)
    }

    private static func call(_ shop: Endpoint, _ desk: AppProxy, _ caller: AgentCaller) async -> Bool {
        (try? await desk.call(ToolCall("tap", of: shop, wait: .zero), of: caller)) != nil
    }
}

/// Trust that is looked at only when a call comes.
private struct EarlyTrust: EndpointAuthorizer {
    let trust: PairingTrust

    var generation: UInt64 { 0 }
    func isLive(_ caller: AgentCaller) -> Bool { true }
    func deliver<Value: Sendable, Failure: Error>(
        for caller: AgentCaller,
        since generation: UInt64,
        _ write: () throws(Failure) -> Value
    ) throws(Failure) -> Value? { try write() }
    func open(for caller: AgentCaller, cut: @escaping @Sendable () -> Void) throws -> GrantSession? { nil }
    func close(_ use: GrantSession) {}

    func clearance(of endpoint: Endpoint, for caller: AgentCaller) async -> EndpointAccess {
        await trust.clearance(of: endpoint, for: caller)
    }
    func noteSecret(of endpoint: Endpoint, isTaken: Bool) async {}
    func note(_ use: EndpointCallEvent, by caller: AgentCaller) async {}
    func changes() async -> AsyncStream<EndpointID> { await trust.changes() }
}

/// An app that answers at first, and then reads nothing any more: what has reached it is what the kernel holds for it.
private final class DeafApp: Dialer {
    private let app = ScriptedApp.appReveal()
    private let isDeaf = Mutex(false)
    private let far = Mutex<[CInt]>([])

    func becomeDeaf() { isDeaf.withLock { $0 = true } }

    /// How many whole calls have reached it since it forgot.
    var deliveries: Int {
        far.withLock { far in
            far.count { number in
                var bytes = [UInt8](repeating: 0, count: 4_096)
                let count = recv(number, &bytes, bytes.count, CInt(MSG_PEEK) | CInt(MSG_DONTWAIT))
                return count > 0 && String(decoding: bytes[..<count], as: UTF8.self).contains("tools/call")
            }
        }
    }

    func forget() {
        far.withLock { far in
            for number in far { close(number) }
            far = []
        }
    }

    func dial(_ route: Route) async throws -> Connection {
        guard isDeaf.withLock({ $0 }) else { return try await app.dial(route) }
        var numbers: [CInt] = [-1, -1]
        guard socketpair(AF_UNIX, CInt(SOCK_STREAM.rawValue | SOCK_CLOEXEC.rawValue), 0, &numbers) == 0 else {
            throw RigError(call: "socketpair")
        }
        _ = fcntl(numbers[0], F_SETFL, O_NONBLOCK)
        far.withLock { $0.append(numbers[1]) }
        return Connection(descriptor: Descriptor(owning: numbers[0]), halfClose: .propagates)
    }
}
