import AccessControl
import Model
import Samples
import Synchronization
import TestSupport

@testable import Agents
@testable import Apps

/// A handler that runs a test's script and records the requests.
final class ScriptedHandler: MCPRequestHandler {
    typealias Script = @Sendable (MCPRequest) async throws(RPCError) -> JSONObject

    private let script: Script
    private let capabilities: JSONObject
    /// The input schema of all its tools.
    private let schema: JSON?
    private let changed: Set<ServerChange>
    private let listeners = Mutex<[AsyncStream<ServerChange>.Continuation]>([])
    private let received = Mutex<[MCPRequest]>([])

    init(
        capabilities: JSONObject = [
            "tools": ["listChanged": true], "resources": ["subscribe": true, "listChanged": true], "logging": [:],
        ],
        schema: JSON? = nil,
        changedLists: Set<ServerChange> = [],
        _ script: @escaping Script = { request throws(RPCError) in
            switch request.method {
            case "tools/list": ["tools": []]
            case "tools/call": ["content": [["type": "text", "text": "done"]]]
            default: throw .methodNotFound(request.method)
            }
        }
    ) {
        self.script = script
        self.capabilities = capabilities
        self.schema = schema
        changed = changedLists
    }

    func parameterHeaders(of tool: String, for principal: Principal) async -> ParameterHeaders {
        ParameterHeaders(of: schema)
    }

    func changedLists(for principal: Principal) async -> Set<ServerChange> { changed }

    var requests: [MCPRequest] { received.withLock { $0 } }

    func description(for principal: Principal) async -> HandlerDescription {
        HandlerDescription(
            info: ["name": "scripted", "title": "Scripted", "version": "1", "websiteUrl": "https://example.com"],
            capabilities: capabilities,
            instructions: "be brief"
        )
    }

    func answer(_ request: MCPRequest, of principal: Principal) async throws(RPCError) -> JSONObject {
        received.withLock { $0.append(request) }
        return try await script(request)
    }

    func changes(for principal: Principal) -> AsyncStream<ServerChange> {
        let (stream, continuation) = AsyncStream.makeStream(of: ServerChange.self)
        listeners.withLock { $0.append(continuation) }
        return stream
    }

    func publish(_ change: ServerChange) { for listener in listeners.withLock({ $0 }) { listener.yield(change) } }
}

/// Records the response to a client.
final class ResponseRecorder: MCPResponseBodyWriter, Sendable {
    private struct State {
        var reply: MCPHTTPResponse?
        var hasEnded = false
        var text = ""
    }

    private let state = Mutex(State())
    private let events = AsyncStream.makeStream(of: String.self)

    var reply: MCPHTTPResponse? { state.withLock { $0.reply } }
    var hasEnded: Bool { state.withLock { $0.hasEnded } }
    var text: String { state.withLock { $0.text } }
    /// The messages of the stream so far, without comments.
    var messages: [JSON] {
        text.split(separator: "\n").filter { $0.hasPrefix("data: ") }.compactMap {
            try? JSON(parsing: $0.dropFirst(6).utf8)
        }
    }

    func write(_ reply: MCPHTTPResponse) async throws { state.withLock { $0.reply = reply } }
    func begin(_ headers: [MCPHTTPResponse.Header]) async throws {}
    func send(_ bytes: [UInt8]) async throws {
        let text = String(decoding: bytes, as: UTF8.self)
        state.withLock { $0.text += text }
        events.continuation.yield(text)
    }
    func end() async throws {
        state.withLock { $0.hasEnded = true }
        events.continuation.finish()
    }

    /// Waits until the stream contains a text.
    func wait(for text: String) async {
        if self.text.contains(text) { return }
        for await _ in events.stream where self.text.contains(text) { return }
    }
}

/// A transport with a scripted handler behind it.
struct TransportFixture: Sendable {
    static let principal = Principal.sampleOwner
    static let both = "application/json, text/event-stream"

    let handler: ScriptedHandler
    let transport: StreamableHTTPTransport
    let sessions: SessionStore
    let keepAliveTimer = KeepAliveTimer(clock: ManualClock())

    init(
        _ handler: ScriptedHandler = ScriptedHandler(),
        key: SessionIDSigner = SessionIDSigner(),
        clock: any Clock<Duration> = ContinuousClock()
    ) {
        self.handler = handler
        sessions = SessionStore(key: key)
        transport = StreamableHTTPTransport(handler, sessions: sessions, keepAliveTimer: keepAliveTimer, clock: clock)
    }

    static func call(
        _ body: JSON?,
        _ method: MCPHTTPRequest.Method = .post,
        headers: [String: [String]] = [:],
        bytes: [UInt8]? = nil,
        onDisconnect: (@Sendable (@escaping @Sendable () -> Void) -> Void)? = nil
    ) -> MCPHTTPRequest {
        var headers = headers
        if headers["Accept"] == nil { headers["Accept"] = [both] }
        let all = headers
        return MCPHTTPRequest(
            method,
            headers: MCPRequestHeaders(
                values: { all[$0] ?? [] },
                fields: all.flatMap { name, values in values.map { (name, $0) } }
            ),
            body: bytes ?? body?.bytes ?? [],
            onDisconnect: onDisconnect
        )
    }

    /// Returns a request of 2026-07-28 as a client sends it.
    static func stateless(
        _ method: String,
        _ params: JSONObject = [:],
        id: JSON = 1,
        meta: JSONObject = [:],
        headers changes: [String: [String]] = [:],
        onDisconnect: (@Sendable (@escaping @Sendable () -> Void) -> Void)? = nil
    ) -> MCPHTTPRequest {
        var all: JSONObject = [
            "io.modelcontextprotocol/protocolVersion": "2026-07-28",
            "io.modelcontextprotocol/clientCapabilities": ["elicitation": [:]],
            "io.modelcontextprotocol/clientInfo": ["name": "test", "version": "1"],
        ]
        for member in meta.members { all[member.name] = member.value.isNull ? nil : member.value }
        var params = params
        params["_meta"] = .object(all)
        var headers = ["MCP-Protocol-Version": ["2026-07-28"], "Mcp-Method": [method]]
        if let name = params["name"]?.string ?? params["uri"]?.string { headers["Mcp-Name"] = [name] }
        headers.merge(changes) { $1 }
        return call(request(method, params, id: id), headers: headers, onDisconnect: onDisconnect)
    }

    static func request(_ method: String, _ params: JSONObject? = nil, id: JSON = 1) -> JSON {
        var object: JSONObject = ["jsonrpc": "2.0", "id": id, "method": .string(method)]
        object["params"] = params.map(JSON.object)
        return .object(object)
    }

    func reply(to call: MCPHTTPRequest, of principal: Principal = principal) async throws -> MCPHTTPResponse? {
        var recorder = ResponseRecorder()
        try await transport.serve(call, of: principal, to: &recorder)
        return recorder.reply
    }

    func json(_ call: MCPHTTPRequest) async throws -> (status: Int, JSON?) {
        let reply = try await reply(to: call)
        return (reply?.status ?? 0, reply.flatMap { try? JSON(parsing: $0.body) })
    }

    /// Starts a session and returns its ID.
    func handshake(_ revision: String = "2025-11-25", _ capabilities: JSON = [:]) async throws -> String {
        let body = Self.request("initialize", ["protocolVersion": .string(revision), "capabilities": capabilities])
        let reply = try await reply(to: Self.call(body))
        return reply?.headers.first { $0.name == "Mcp-Session-Id" }?.value ?? ""
    }

    /// Serves a request while a test inspects the response. The request is cancelled when the test returns.
    func serving(
        _ call: MCPHTTPRequest,
        of principal: Principal = principal,
        _ body: @escaping @Sendable (ResponseRecorder) async throws -> Void
    ) async throws {
        let recorder = ResponseRecorder()
        try await withThrowingTaskGroup(of: Void.self) { group in
            group.addTask { [transport] in
                var recorder = recorder
                try? await transport.serve(call, of: principal, to: &recorder)
            }
            try await body(recorder)
            group.cancelAll()
        }
    }
}
