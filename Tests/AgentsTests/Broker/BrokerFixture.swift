import AccessControl
import FoundationEssentials
import Model
import Registry
import Samples
import Synchronization
import Team
import TestSupport
import Testing
import Tunnels

@testable import Agents
@testable import Apps

/// Apps with scripted tools and results.
final class FakeAppCaller: AppCaller {
    private let lists = Mutex<[EndpointID: Result<AppToolList, AppError>]>([:])
    private let received = Mutex<[ToolCall]>([])
    /// The apps whose tools were listed, in order.
    let listed = Mutex<[EndpointID]>([])
    private let result: JSONObject
    /// The token that the apps accept; nil if they are unreachable.
    let secret = Mutex<String?>(nil)

    private let clock: any Clock<Duration>

    init(
        result: JSONObject = ["content": [["type": "text", "text": "tapped"]], "own": 1],
        clock: any Clock<Duration>
    ) {
        (self.result, self.clock) = (result, clock)
    }

    var calls: [ToolCall] { received.withLock { $0 } }

    func set(_ list: Result<AppToolList, AppError>, of id: EndpointID) { lists.withLock { $0[id] = list } }

    func tools(of endpoint: Endpoint, for principal: Principal) async throws(AppError) -> AppToolList {
        listed.withLock { $0.append(endpoint.id) }
        guard let list = lists.withLock({ $0[endpoint.id] }) else { throw .notMCP }
        return try list.get()
    }

    func disconnect(_ id: EndpointID) async {}

    func toolCount(of endpoint: Endpoint) async -> Int? { lists.withLock { try? $0[endpoint.id]?.get().tools.count } }

    func accepts(_ secret: EndpointSecret, at endpoint: Endpoint, for principal: Principal) async -> Bool? {
        self.secret.withLock { $0 }.map { $0 == secret.reveal() }
    }

    /// The apps that require no token.
    let open = Mutex<Set<EndpointID>>([])
    func requiresNoSecret(_ endpoint: Endpoint, for principal: Principal) async -> Bool {
        open.withLock { $0.contains(endpoint.id) }
    }

    /// True for each app that accepts a principal; absent if the app is unreachable.
    let accessResults = Mutex<[EndpointID: Bool]>([:])
    func isOpen(_ endpoint: Endpoint, for principal: Principal) async -> Bool? {
        accessResults.withLock { $0[endpoint.id] }
    }
    func wantsSecret(_ endpoint: Endpoint) -> Bool { accessResults.withLock { $0[endpoint.id] == false } }
    func requiresSecret(_ endpoint: Endpoint) -> Bool { false }
    func describingDeviations(_ endpoints: [Endpoint]) -> [Endpoint] { endpoints }

    func call(_ call: ToolCall, of principal: Principal) async throws(AppError) -> JSONObject {
        let call = try await call.leased(clock)
        received.withLock { $0.append(call) }
        return result
    }
}

/// Approvals and secrets in memory.
final class FakeEndpointApprovals: EndpointApprovalStore {
    struct State {
        var unapproved: Set<EndpointID> = []
        var denied: Set<EndpointID> = []
        var held: [EndpointID: String] = [:]
        var ports: [EndpointID: UInt16] = [:]
        /// The endpoints with a token for a launch that was not seen.
        var unseen: Set<EndpointID> = []
        var refusal: AccessError?
    }

    let state = Mutex(State())

    func evaluated(_ endpoints: [Endpoint]) async -> [Endpoint] {
        endpoints.map { endpoint in
            var endpoint = endpoint
            endpoint.approval = state.withLock { state in
                state.denied.contains(endpoint.id)
                    ? .denied : state.unapproved.contains(endpoint.id) ? .pending : .approved
            }
            for index in endpoint.routes.indices { endpoint.routes[index].approval = endpoint.approval }
            return endpoint
        }
    }

    func withSecrets(among endpoints: [Endpoint]) async -> Set<EndpointID> {
        state.withLock { Set($0.held.keys).intersection(endpoints.map(\.id)) }
    }

    func saveSecret(
        _ secret: EndpointSecret,
        of endpoint: Endpoint,
        on port: UInt16?,
        isForUnseen: Bool,
        for principal: Principal
    ) async throws {
        if let refusal = state.withLock({ $0.refusal }) { throw refusal }
        state.withLock {
            $0.held[endpoint.id] = secret.reveal()
            $0.ports[endpoint.id] = port
            if isForUnseen { $0.unseen.insert(endpoint.id) }
        }
    }
}

/// Tunnels that are only recorded.
final class FakeTunnels: TunnelProvider {
    private let specs = Mutex<[TunnelSpec]>([])

    var opened: [TunnelSpec] { specs.withLock { $0 } }

    func open(_ spec: TunnelSpec, for principal: Principal) async throws -> Tunnel {
        specs.withLock { $0.append(spec) }
        return Self.tunnel(spec)
    }

    func tunnels(of principal: Principal) async -> [Tunnel] { opened.map(Self.tunnel) }

    func close(_ id: String, of principal: Principal) async throws {
        guard id == "t1" else { throw TunnelError.noSuchTunnel(id) }
        specs.withLock { $0 = [] }
    }

    private static func tunnel(_ spec: TunnelSpec) -> Tunnel {
        Tunnel.sample(spec: spec, owner: 7, listenAddresses: [.tcp(host: "127.0.0.1", port: 43_211)])
    }
}

/// The scripted result of probes.
final class FakeProbe: Sendable {
    private let state = Mutex<(answers: Bool?, asked: Set<EndpointID>)>((nil, []))

    var asked: Set<EndpointID> { state.withLock { $0.asked } }
    func set(_ answers: Bool) { state.withLock { $0.answers = answers } }

    func ask(_ id: EndpointID) -> Bool? {
        state.withLock { state in
            state.asked.insert(id)
            return state.answers
        }
    }
}

/// The lists of phones that a test sends.
private struct FakeDevices: DeviceListing {
    let lists: AsyncStream<[Device]>
    let followed: AsyncStream<Void>.Continuation

    func devices() async -> [Device] { [] }

    func deviceLists() async -> AsyncStream<[Device]> {
        followed.yield()
        return lists
    }
}

/// The broker's handler with a real registry and fake apps.
struct BrokerFixture: Sendable {
    static let owner = TransportFixture.principal

    let registry: EndpointRegistry
    let apps: FakeAppCaller
    let approvals = FakeEndpointApprovals()
    let tunnels = FakeTunnels()
    let leases: LeaseService
    let clock = ManualClock()
    /// True if the apps answer; nil leaves the listed state unchanged.
    let probe = FakeProbe()
    let deviceLists = AsyncStream.makeStream(of: [Device].self)
    /// Yields when the handler has subscribed to the device list.
    let followed = AsyncStream.makeStream(of: Void.self)
    let handler: BrokerRequestHandler

    /// - Parameters:
    ///   - remote: The endpoints of the other hosts; nil without a team.
    ///   - logs: Reads the logs of phones; nil if none is read.
    init(_ remote: RemoteEndpoints? = nil, logs: PhoneLogService? = nil) {
        registry = EndpointRegistry(
            startingAfter: 1_795_000_000_000,
            hosts: remote?.hosts,
            record: remote?.record,
            now: { Date(timeIntervalSince1970: 1_795_000_000) }
        )
        let (registry, probe) = (registry, probe)
        apps = FakeAppCaller(clock: clock)
        leases = LeaseService(clock: clock, now: { Date(timeIntervalSince1970: 1_795_000_000) })
        handler = BrokerRequestHandler(
            list: remote.map { TeamEndpoints(registry, $0) } ?? registry,
            apps: apps,
            approvals: approvals,
            tunnels: tunnels,
            leases: leases,
            devices: FakeDevices(lists: deviceLists.stream, followed: followed.continuation),
            logs: logs,
            probe: { endpoint in
                guard let answers = probe.ask(endpoint.id) else { return }
                await registry.report(answers ? nil : DialError(.refused, "refused"), of: endpoint.id)
            },
            clock: clock
        )
    }

    static func grant(_ scopes: Set<Scope>, on selector: Selector = .all) -> Principal {
        .holder(of: "g1", scopes, on: selector)
    }

    /// Adds an app on a network machine to the registry.
    @discardableResult
    func addEndpoint(
        _ app: String = "com.example.shop",
        on machine: String = "iphone.local",
        address: String = "192.168.1.20",
        port: UInt16 = 4_000,
        txt: [String] = ["auth=session-token", "version=3.2.0"]
    ) async throws -> EndpointID {
        let sighting = Self.sighting(app, on: machine, address: address, port: port, txt: txt)
        await registry.apply(.seen(sighting))
        return try #require(await registry.endpoint(seenAs: sighting.id)).id
    }

    static func sighting(
        _ app: String,
        on machine: String,
        address: String = "192.168.1.20",
        port: UInt16,
        txt: [String] = []
    ) -> Sighting {
        Sighting.sample(
            app,
            key: "\(app)/\(machine)",
            name: "AppReveal-\(app)",
            machine: machine,
            version: "3.2.0",
            txt: txt,
            routes: [.network(address, port: port, interface: "eth0", machine: machine)]
        )
    }

    func call(
        _ tool: String,
        _ arguments: JSONObject = [:],
        of principal: Principal = owner
    ) async throws -> JSONObject {
        let request = MCPRequest("tools/call", ["name": .string(tool), "arguments": .object(arguments)])
        return try await handler.answer(request, of: principal)
    }
}

extension JSONObject {
    var isError: Bool { self["isError"] == true }
    var text: String { self["content"]?.array?.first?["text"]?.string ?? "" }
    var structure: JSON? { self["structuredContent"] }
}
