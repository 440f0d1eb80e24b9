import FoundationEssentials
import JSON
import Model
import AccessControl
import Registry
import Synchronization
import Testing
import Tunnels

@testable import MCP

/// Apps that a test makes up.
final class FakeApps: AppCaller {
    private let lists = Mutex<[EndpointID: Result<CachedToolList, AppError>]>([:])
    private let heard = Mutex<[ToolCall]>([])
    private let result: JSONObject
    /// The one that they take; nil where they cannot be asked.
    let secret = Mutex<String?>(nil)

    init(result: JSONObject = ["content": [["type": "text", "text": "tapped"]], "own": 1]) { self.result = result }

    var calls: [ToolCall] { heard.withLock { $0 } }

    func set(_ list: Result<CachedToolList, AppError>, of id: EndpointID) { lists.withLock { $0[id] = list } }

    func tools(of endpoint: Endpoint, for caller: AgentCaller) async throws(AppError) -> CachedToolList {
        guard let list = lists.withLock({ $0[endpoint.id] }) else { throw .noTools(endpoint.id) }
        return try list.get()
    }

    func toolCount(of endpoint: Endpoint) async -> Int? {
        lists.withLock { try? $0[endpoint.id]?.get().tools.count }
    }

    func takes(_ secret: EndpointSecret, at endpoint: Endpoint, for caller: AgentCaller) async -> Bool? {
        self.secret.withLock { $0 }.map { $0 == secret.reveal() }
    }

    /// What they answer when they are asked whether a caller may come in; nil where they cannot be asked.
    let doors = Mutex<[EndpointID: Bool]>([:])
    func isOpen(_ endpoint: Endpoint, for caller: AgentCaller) async -> Bool? { doors.withLock { $0[endpoint.id] } }
    func wantsSecret(_ endpoint: Endpoint) -> Bool { doors.withLock { $0[endpoint.id] == false } }

    func call(_ call: ToolCall, of caller: AgentCaller) async -> JSONObject {
        heard.withLock { $0.append(call) }
        return result
    }
}

/// Trust as a test has it.
final class ScriptedTrust: AgentTrust {
    struct State {
        var unapproved: Set<EndpointID> = []
        var held: [EndpointID: String] = [:]
        var ports: [EndpointID: UInt16] = [:]
        /// Those whose token is for a launch that was not seen.
        var unseen: Set<EndpointID> = []
        var refusal: AccessError?
    }

    let state = Mutex(State())

    func judged(_ endpoints: [Endpoint]) async -> [Endpoint] {
        endpoints.map { endpoint in
            var endpoint = endpoint
            endpoint.approval = state.withLock { $0.unapproved.contains(endpoint.id) ? .discovered : .approved }
            for index in endpoint.routes.indices { endpoint.routes[index].approval = endpoint.approval }
            return endpoint
        }
    }

    func held(of endpoints: [Endpoint]) async -> Set<EndpointID> {
        state.withLock { Set($0.held.keys).intersection(endpoints.map(\.id)) }
    }

    func keep(
        _ secret: EndpointSecret,
        of endpoint: Endpoint,
        on port: UInt16?,
        isForUnseen: Bool,
        for caller: AgentCaller
    ) async throws {
        if let refusal = state.withLock({ $0.refusal }) { throw refusal }
        state.withLock {
            $0.held[endpoint.id] = secret.reveal()
            $0.ports[endpoint.id] = port
            if isForUnseen { $0.unseen.insert(endpoint.id) }
        }
    }
}

/// Tunnels that are only noted.
final class FakeTunnels: TunnelProvider {
    private let specs = Mutex<[TunnelSpec]>([])

    var opened: [TunnelSpec] { specs.withLock { $0 } }

    func open(_ spec: TunnelSpec, for caller: AgentCaller) async throws -> Tunnel {
        specs.withLock { $0.append(spec) }
        return Self.tunnel(spec)
    }

    func tunnels(of caller: AgentCaller) async -> [Tunnel] { opened.map(Self.tunnel) }

    func close(_ id: String, of caller: AgentCaller) async throws {
        guard id == "t1" else { throw TunnelError.noSuchTunnel(id) }
        specs.withLock { $0 = [] }
    }

    private static func tunnel(_ spec: TunnelSpec) -> Tunnel {
        Tunnel(
            id: "t1",
            spec: spec,
            owner: 7,
            state: .active,
            bound: [.tcp(host: "127.0.0.1", port: 43_211)],
            since: Date(timeIntervalSince1970: 0)
        )
    }
}

/// What a probe of the apps finds.
final class Answering: Sendable {
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

/// The broker's own server over a real registry.
struct BrokerBench: Sendable {
    static let owner = DoorBench.caller

    let registry = EndpointRegistry(
        startingAfter: 1_795_000_000_000,
        now: { Date(timeIntervalSince1970: 1_795_000_000) }
    )
    let apps = FakeApps()
    let trust = ScriptedTrust()
    let tunnels = FakeTunnels()
    let clock = StillClock()
    /// Whether the apps answer where they are listed; nil where nobody can tell.
    let isAnswering = Answering()
    let phones = AsyncStream.makeStream(of: [Device].self)
    /// Says when the server has begun to follow.
    let followed = AsyncStream.makeStream(of: Void.self)
    let server: BrokerMCPServer

    init() {
        let (lists, follows) = (phones.stream, followed.continuation)
        let (registry, isAnswering) = (registry, isAnswering)
        server = BrokerMCPServer(
            registry: registry,
            apps: apps,
            trust: trust,
            tunnels: tunnels,
            phones: Phones(
                list: { [] },
                lists: {
                    follows.yield()
                    return lists
                }
            ),
            probe: { endpoint in
                guard let answers = isAnswering.ask(endpoint.id) else { return }
                await registry.report(answers ? nil : DialError(.refused, "refused"), of: endpoint.id)
            },
            clock: clock
        )
    }

    static func grant(_ scopes: Set<Scope>, on selector: Selector = .all) -> AgentCaller {
        AgentCaller(.grant("g1"), permissions: Permissions(scopes, on: selector))
    }

    /// An app on a host of the network, as it is listed then.
    @discardableResult
    func see(
        _ app: String = "com.example.shop",
        on host: String = "iphone.local",
        port: UInt16 = 4_000,
        txt: [String] = ["auth=session-token", "version=3.2.0"]
    ) async throws -> EndpointID {
        let sighting = Self.sighting(app, on: host, port: port, txt: txt)
        await registry.apply(.seen(sighting))
        return try #require(await registry.endpoint(seenAs: sighting.id)).id
    }

    static func sighting(_ app: String, on host: String, port: UInt16, txt: [String] = []) -> Sighting {
        Sighting(
            id: Sighting.ID(source: .bonjour, key: "\(app)/\(host)"),
            kind: .appreveal,
            app: SanitizedText(app),
            appIsBundleID: true,
            name: SanitizedText("AppReveal-\(app)"),
            host: SanitizedText(host),
            version: SanitizedText("3.2.0"),
            txt: TXTRecord(items: txt.map { Array($0.utf8) }),
            routes: [.lan(LANRoute(address: "192.168.1.20", port: port, interface: "eth0", host: SanitizedText(host)))]
        )
    }

    func call(
        _ tool: String,
        _ arguments: JSONObject = [:],
        of caller: AgentCaller = owner
    ) async throws -> JSONObject {
        let request = MCPRequest("tools/call", ["name": .string(tool), "arguments": .object(arguments)])
        return try await server.answer(request, of: caller)
    }
}

extension JSONObject {
    var isError: Bool { self["isError"] == true }
    var text: String { self["content"]?.array?.first?["text"]?.string ?? "" }
    var structure: JSON? { self["structuredContent"] }
}
