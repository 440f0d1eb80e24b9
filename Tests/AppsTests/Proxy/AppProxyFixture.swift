import FoundationEssentials
@testable import Apps
import AccessControl
import Model
import Registry
import Samples
import Synchronization
import SystemIO

/// An `AppProxy` with in-memory dependencies.
final class AppProxyFixture: Sendable {
    let registry = EndpointRegistry()
    let authorizer: PermissiveAuthorizer
    let storage: FakeCacheStorage
    let leases = LeaseService()
    let activity: ActivityLog
    let proxy: AppProxy
    let owner = Principal.sampleOwner

    init(
        _ dialer: any Dialer,
        storage: FakeCacheStorage = FakeCacheStorage(),
        profiles: [Profile] = [],
        sizeLimiter: ResultSizeLimiter = .sample,
        _ adjust: (inout UpstreamTimeouts) -> Void = { _ in }
    ) {
        var timeouts = UpstreamTimeouts()
        adjust(&timeouts)
        authorizer = PermissiveAuthorizer()
        self.storage = storage
        activity = ActivityLog(limit: 100, pictureLimit: 1_000_000, registry: registry)
        proxy = AppProxy(
            registry: registry,
            dialer: dialer,
            profiles: profiles,
            authorizer: authorizer,
            leases: leases,
            storage: storage,
            sizeLimiter: sizeLimiter,
            timeouts: timeouts,
            logger: .quiet,
            activity: activity
        )
    }

    /// Runs the proxy during the body.
    func run(_ body: @Sendable () async throws -> Void) async throws {
        try await withThrowingTaskGroup(of: Void.self) { group in
            group.addTask { try await self.proxy.run() }
            try await body()
            group.cancelAll()
            while (try? await group.next()) != nil {}
        }
    }

    /// Calls a tool. An error is returned as the result that an agent with the broker's tools gets.
    func call(_ call: ToolCall, of principal: Principal) async -> JSONObject {
        do { return try await proxy.call(call, of: principal) } catch {
            return error.result(for: .brokerAgent, at: call.endpoint.id)
        }
    }

    /// Adds an app at a port to the registry.
    @discardableResult
    func appear(
        _ name: String = "shop",
        port: UInt16 = 5_000,
        kind: EndpointKind = .appreveal,
        source: Sighting.Source = .config
    ) async -> Endpoint? {
        let sighting = Sighting.sample(
            "com.example.\(name)",
            source: source,
            key: name,
            kind: kind,
            name: name,
            // An advertised address has a host, or nobody could approve it.
            routes: [.network("127.0.0.1", port: port, machine: source == .bonjour ? "phone.local" : nil)]
        )
        await registry.apply(.seen(sighting))
        return await registry.endpoint(seenAs: sighting.id)
    }

    func disappear(_ name: String = "shop") async {
        await registry.apply(.lost(Sighting.ID(source: .config, key: name)))
    }
}

extension ResultSizeLimiter {
    /// A limiter that can store no artifacts.
    static let sample = ResultSizeLimiter(
        images: ImageResizer(),
        artifacts: ArtifactStore(in: "/dev/null/artifacts", logger: .quiet)
    )
}

/// An authorizer that permits everything by default.
final class PermissiveAuthorizer: EndpointAuthorizer {
    private struct State {
        var secret: EndpointSecret?
        var isFull = false
        var isUnapproved = false
        var events: [EndpointCallEvent] = []
        var tokenResults: [Bool] = []
    }

    private let state = Mutex(State())
    private let (stream, out) = AsyncStream.makeStream(of: EndpointID.self)

    var events: [EndpointCallEvent] { state.withLock { $0.events } }
    /// The stored secret in clear text.
    var secret: String? { state.withLock { $0.secret }?.reveal() }
    /// Makes the storage of exchanged secrets fail.
    func set(isFull: Bool) { state.withLock { $0.isFull = isFull } }
    func rejectAll() { state.withLock { $0.isUnapproved = true } }

    func set(secret: String, of id: EndpointID) throws {
        let secret = try EndpointSecret(secret)
        state.withLock { $0.secret = secret }
        out.yield(id)
    }

    func access(to endpoint: Endpoint, for principal: Principal) async -> AuthorizedRoutes {
        state.withLock { state in
            let access = AuthorizedRoutes(
                state.isUnapproved ? [] : endpoint.routes.map { AuthorizedRoute($0.route, secret: state.secret) },
                isUnapproved: state.isUnapproved
            )
            return principal.may(.secretUse, on: endpoint) ? access : access.withoutSecrets
        }
    }

    func observe(_ endpoint: Endpoint) async {}
    func recordAcceptance(of secret: EndpointSecret, by endpoint: Endpoint, over routes: [AuthorizedRoute]) {}
    let generation: UInt64 = 0
    func isLive(_ principal: Principal) -> Bool { true }
    func deliver<Value: Sendable, Failure: Error>(
        for principal: Principal,
        since generation: UInt64,
        _ write: () throws(Failure) -> Value
    ) throws(Failure) -> Value? { try write() }
    func register(for principal: Principal, onRevoke: @escaping @Sendable () -> Void) throws -> GrantSession? { nil }
    func unregister(_ session: GrantSession) {}

    /// The recorded results of token use, in order.
    var tokenResults: [Bool] { state.withLock { $0.tokenResults } }
    func recordSecretResult(for endpoint: Endpoint, accepted: Bool) async {
        state.withLock { $0.tokenResults.append(accepted) }
    }

    func storeExchangedSecret(_ secret: EndpointSecret, of endpoint: Endpoint) async throws {
        let isFull = state.withLock { state in
            if !state.isFull { state.secret = secret }
            return state.isFull
        }
        if isFull { throw AccessError.notSaved(path: "secrets", reason: "the disk is full") }
        out.yield(endpoint.id)
    }

    func audit(_ event: EndpointCallEvent, by principal: Principal) async { state.withLock { $0.events.append(event) } }
    func changes() async -> AsyncStream<EndpointID> { stream }
}

final class FakeCacheStorage: AppCacheStorage {
    private let texts = Mutex<[EndpointID: String]>([:])

    func text(of id: EndpointID) -> String? { texts.withLock { $0[id] } }
    func load(_ id: EndpointID) async -> String? { text(of: id) }
    func save(_ text: String, of id: EndpointID) async { texts.withLock { $0[id] = text } }
    func delete(_ id: EndpointID) async { texts.withLock { $0[id] = nil } }
}

extension JSONObject {
    var isError: Bool { self["isError"] == true }
    var text: String { self["content"]?.array?.first?["text"]?.string ?? "" }
}
