import FoundationEssentials
import JSON
import Logging
import Model
import AccessControl
import Registry
import SystemIO
import Synchronization

@testable import MCP

/// A desk with everything around it in memory.
final class DeskRig: Sendable {
    let registry = EndpointRegistry()
    let trust: FakeAppTrust
    let memory: FakeMemory
    let desk: AppProxy
    let owner = AgentCaller(.process(uid: 0, pid: 1, executable: SanitizedText("test")), permissions: nil)

    init(_ dialer: any Dialer, memory: FakeMemory = FakeMemory(), _ adjust: (inout UpstreamTimeouts) -> Void = { _ in })
    {
        var limits = UpstreamTimeouts()
        adjust(&limits)
        trust = FakeAppTrust()
        self.memory = memory
        desk = AppProxy(
            registry: registry,
            dialer: dialer,
            trust: trust,
            memory: memory,
            trim: { result, _, _ in result },
            limits: limits,
            logger: Logger(label: "test") { _ in SwiftLogNoOpLogHandler() }
        )
    }

    /// Runs the desk while the body does.
    func run(_ body: @Sendable () async throws -> Void) async throws {
        try await withThrowingTaskGroup(of: Void.self) { group in
            group.addTask { try await self.desk.run() }
            try await body()
            group.cancelAll()
            while (try? await group.next()) != nil {}
        }
    }

    /// Calls a tool; what keeps it from being called is its result, as an agent is told.
    func call(_ call: ToolCall, of caller: AgentCaller) async -> JSONObject {
        do { return try await desk.call(call, of: caller) } catch { return error.result(for: .agent) }
    }

    /// An app shows itself at a port.
    @discardableResult
    func appear(
        _ name: String = "shop",
        port: UInt16 = 5_000,
        kind: EndpointKind = .appreveal,
        source: Sighting.Source = .config
    ) async -> Endpoint? {
        let sighting = Sighting(
            id: Sighting.ID(source: source, key: name),
            kind: kind,
            app: SanitizedText("com.example.\(name)"),
            appIsBundleID: true,
            name: SanitizedText(name),
            routes: [.lan(LANRoute(address: "127.0.0.1", port: port))]
        )
        await registry.apply(.seen(sighting))
        return await registry.endpoint(seenAs: sighting.id)
    }

    func disappear(_ name: String = "shop") async {
        await registry.apply(.lost(Sighting.ID(source: .config, key: name)))
    }
}

/// Trust that says yes to everything, unless it is told otherwise.
final class FakeAppTrust: EndpointAuthorizer {
    private struct State {
        var secret: EndpointSecret?
        var isRefused = false
        var uses: [EndpointCallEvent] = []
        var taken: [Bool] = []
    }

    private let state = Mutex(State())
    private let (stream, out) = AsyncStream.makeStream(of: EndpointID.self)

    var uses: [EndpointCallEvent] { state.withLock { $0.uses } }
    func refuse() { state.withLock { $0.isRefused = true } }

    func set(secret: String, of id: EndpointID) throws {
        let secret = try EndpointSecret(secret)
        state.withLock { $0.secret = secret }
        out.yield(id)
    }

    func clearance(of endpoint: Endpoint, for caller: AgentCaller) async -> EndpointAccess {
        state.withLock { state in
            let clearance = EndpointAccess(
                state.isRefused ? [] : endpoint.routes.map { AuthorizedRoute($0.route, secret: state.secret) },
                isRefused: state.isRefused
            )
            return caller.may(.secretUse, on: endpoint) ? clearance : clearance.withoutSecrets
        }
    }

    let generation: UInt64 = 0
    func isLive(_ caller: AgentCaller) -> Bool { true }
    func deliver<Value: Sendable, Failure: Error>(
        for caller: AgentCaller,
        since generation: UInt64,
        _ write: () throws(Failure) -> Value
    ) throws(Failure) -> Value? { try write() }
    func open(for caller: AgentCaller, cut: @escaping @Sendable () -> Void) throws -> GrantSession? { nil }
    func close(_ use: GrantSession) {}

    /// What apps said of the secrets that they were shown, in turn.
    var taken: [Bool] { state.withLock { $0.taken } }
    func noteSecret(of endpoint: Endpoint, isTaken: Bool) async { state.withLock { $0.taken.append(isTaken) } }

    func note(_ use: EndpointCallEvent, by caller: AgentCaller) async { state.withLock { $0.uses.append(use) } }
    func changes() async -> AsyncStream<EndpointID> { stream }
}

final class FakeMemory: AppCacheStorage {
    private let texts = Mutex<[EndpointID: String]>([:])

    func text(of id: EndpointID) -> String? { texts.withLock { $0[id] } }
    func recall(_ id: EndpointID) async -> String? { text(of: id) }
    func keep(_ text: String, of id: EndpointID) async { texts.withLock { $0[id] = text } }
    func forget(_ id: EndpointID) async { texts.withLock { $0[id] = nil } }
}
