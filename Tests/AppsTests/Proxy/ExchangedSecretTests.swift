import AccessControl
import FoundationEssentials
import Model
import Registry
import Samples
import TestSupport
import Testing

@testable import Apps

/// The storage of a boot token's successor, with the real access control.
@Suite(.scratchFolder) struct ExchangedSecretTests {
    private let scratch = ScratchFolder.current
    private static let owner = AuditActor.process(uid: 0, pid: 1, executable: SanitizedText("test"))

    private static func call(
        _ app: Endpoint,
        on registry: EndpointRegistry,
        _ server: PlainServer,
        _ store: AccessStore
    ) async throws -> JSONObject {
        let proxy = AppProxy(
            registry: registry,
            dialer: server,
            profiles: try Profile.allShipped(),
            authorizer: AccessStoreAuthorizer(store),
            storage: FakeCacheStorage(),
            sizeLimiter: .sample,
            logger: .quiet
        )
        return try await proxy.call(ToolCall("elements", of: app), of: .sampleOwner)
    }

    @Test func `the new token replaces the boot token with an entry in the audit log, and outlives a restart`()
        async throws
    {
        let server = PlainServer.debugBridge(boot: "BOOT-TOKEN-1")
        let store = try AccessStore(in: scratch.path, logger: .quiet)
        let registry = EndpointRegistry()
        let sighting = Sighting.sample(
            key: "shop",
            kind: EndpointKind("debugbridge"),
            name: "shop",
            routes: [.network("192.168.1.20", port: 5_000, interface: "lo", machine: "phone.local")]
        )
        await registry.apply(.seen(sighting))
        let app = try #require(await registry.endpoint(seenAs: sighting.id))
        try await store.approvals.approve(app, by: Self.owner, from: .unix(uid: 0))
        try await store.secrets.set(EndpointSecret("BOOT-TOKEN-1"), of: app, by: Self.owner, from: .unix(uid: 0))

        let first = try await Self.call(app, on: registry, server, store)

        #expect(first["content"]?.array?.first?["text"] == #"{"elements":[]}"#)
        let secret = try #require(store.secrets.access(to: app).routes.first?.secret).reveal()
        #expect(secret != "BOOT-TOKEN-1" && secret.utf8.count >= 16)
        let audit = try await store.auditLines(after: nil, limit: 100).map { String(decoding: $0, as: UTF8.self) }
        #expect(audit.contains { $0.contains("secret") && $0.contains("broker") }, "\(audit)")
        #expect(!audit.contains { $0.contains(secret) || $0.contains("BOOT-TOKEN-1") })

        let second = try await Self.call(app, on: registry, server, store)
        #expect(second["content"]?.array?.first?["text"] == #"{"elements":[]}"#)
        #expect(store.secrets.access(to: app).routes.first?.secret?.reveal() == secret)
    }
}
