import HTTPTypes
import Hummingbird
import HummingbirdCore
import JSON
import MCP
import Model
import NIOCore
import Registry
import SystemIO

/// Where agents come in (`/mcp`, `/e/{id}/mcp`, `/all/mcp`), and the same for people and scripts under `/v1/endpoints`.
enum MCPRoutes {
    @Sendable static func broker(_ call: APIRequest) async throws -> Response {
        try await call.answer(at: call.broker.agents.broker)
    }

    @Sendable static func app(_ call: APIRequest) async throws -> Response {
        // How far it is trusted is looked at when it is dialled.
        let endpoint = try await call.broker.registry.endpoint(try call.endpointID())
        guard call.visitor.sees(endpoint) else { throw RegistryError.noSuchEndpoint(endpoint.id.text) }
        return try await call.answer(at: call.broker.agents.app(endpoint.id))
    }

    @Sendable static func all(_ call: APIRequest) async throws -> Response {
        guard let all = call.broker.agents.all else {
            throw Problem(
                .notFound,
                "all apps at one address are off",
                next: "all = true in the table [mcp] of the configuration"
            )
        }
        return try await call.answer(at: all)
    }

    @Sendable static func tools(_ call: APIRequest) async throws -> Response {
        let endpoint = try await call.endpoint()
        let (apps, agent) = (call.broker.agents.apps, call.visitor.agent)
        let list = try await call.whileConnected { try await apps.tools(of: endpoint, for: agent) }
        var answer: JSONObject = [
            "schema": 1, "tools": .array(list.tools.map(JSON.object)), "stale": .bool(list.isStale),
            "changed": .bool(list.hasChanged),
        ]
        if let staleness = list.staleness {
            answer["reason"] = .string(staleness.description)
            answer["next"] = .string(staleness.next(for: .person))
        }
        return call.answer(json: .object(answer))
    }

    /// What has reached the app has a result, which says with `isError` that something went wrong there; what has not is a
    /// problem, the same as everywhere else.
    @Sendable static func call(_ call: APIRequest) async throws -> Response {
        let endpoint = try await call.endpoint()
        let body = try await call.bytes(upTo: MCPHTTPRequest.bodyLimit)
        let order = try ToolCallRequest(body)
        // A person who names an endpoint says yes to it; for anybody else somebody must have.
        try await call.checkTrust(in: endpoint)
        let appCall = ToolCall(
            order.tool,
            of: endpoint,
            arguments: order.arguments,
            wait: .seconds(order.wait),
            patience: order.patience.map { .seconds($0) },
            maxPixels: order.maxPixels
        )
        let (apps, agent) = (call.broker.agents.apps, call.visitor.agent)
        let result: JSONObject
        do {
            result = try await call.whileConnected { try await apps.call(appCall, of: agent) }
        } catch let failure as AppError where failure.isDelivered {
            result = failure.result(for: .person)
        }
        return call.answer(json: ["schema": 1, "result": .object(result)])
    }
}

/// What `POST /v1/endpoints/{id}/call` is told.
struct ToolCallRequest: Hashable {
    let tool: String
    let arguments: JSONObject
    let wait: Int
    let patience: Int?
    let maxPixels: Int

    /// - Throws: `Problem` that names what is wrong.
    init(_ body: [UInt8]) throws(Problem) {
        let json: JSON
        do { json = try JSON(parsing: body) } catch { throw Problem(.badRequest, "the body cannot be read: \(error)") }
        guard let tool = json["tool"]?.string, !tool.isEmpty else {
            throw Self.wrong("tool", "the tool's name, a text", json["tool"])
        }
        guard let arguments = (json["arguments"] ?? [:]).object else {
            throw Self.wrong("arguments", "an object", json["arguments"])
        }
        self.tool = tool
        self.arguments = arguments
        wait = try Self.number(json["wait_s"], "wait_s", 0...60) ?? 10
        patience = try Self.number(json["timeout_s"], "timeout_s", 1...120)
        maxPixels = try Self.number(json["max_px"], "max_px", 0...4_096) ?? 1_568
    }

    private static func number(_ value: JSON?, _ name: String, _ range: ClosedRange<Int>) throws(Problem) -> Int? {
        guard let value else { return nil }
        guard let number = value.int, range.contains(number) else {
            throw wrong(name, "a whole number from \(range.lowerBound) to \(range.upperBound)", value)
        }
        return number
    }

    private static func wrong(_ name: String, _ wanted: String, _ found: JSON?) -> Problem {
        let found = found.map { $0.number.map { SanitizedText($0.text, limit: 40).text } ?? $0.kind } ?? "left out"
        return Problem(.badRequest, "\"\(name)\" must be \(wanted), not \(found)")
    }
}

/// A call as the agents' doors see it.
extension APIRequest {
    /// Answers through an agent's door, later.
    func answer(at server: any MCPServer) async throws -> Response {
        guard let method = MCPHTTPRequest.Method(rawValue: request.method.rawValue) else {
            throw Problem(.methodNotAllowed, "MCP has no \(request.method)")
        }
        let agent = MCPHTTPRequest(
            method,
            headers: MCPRequestHeaders(
                values: { RequestValidator.values(of: $0, in: request.head) },
                fields: request.headers.lazy.map { ($0.name.rawName, $0.value) }
            ),
            body: method == .post ? try await bytes(upTo: MCPHTTPRequest.bodyLimit) : []
        ) { [departures] in departures.next($0) }
        let (agents, caller) = (broker.agents, visitor.agent)
        let door = StreamableHTTPTransport(
            server,
            sessions: agents.sessions,
            heartbeat: agents.heartbeat,
            artifacts: agents.artifacts
        )
        late.set { writer in
            var response = MCPResponseWriter(writer)
            try await door.serve(agent, of: caller, to: &response)
        }
        return Response(status: .ok)
    }

    /// Runs something that is cancelled when the caller closes the connection. The body of the request must have been read.
    ///
    /// - Throws: What the body throws; `CancellationError` when the caller has gone.
    func whileConnected<Value: Sendable>(_ body: @escaping @Sendable () async throws -> Value) async throws -> Value {
        let departure = Promise<Void>()
        departures.next { departure.settle(.success(())) }
        return try await withThrowingTaskGroup(of: Value?.self) { group in
            group.addTask { try await body() }
            group.addTask {
                try await departure.value()
                return nil
            }
            defer { group.cancelAll() }
            guard let value = try await group.next() ?? nil else { throw CancellationError() }
            return value
        }
    }

    /// The body, which says that it is JSON, as it came.
    func bytes(upTo limit: Int) async throws -> [UInt8] {
        try checkMedia()
        return Array(buffer: try await collect(upTo: limit))
    }

    /// A response with JSON that is none of Swift's types.
    func answer(json: JSON, type: String = "application/json") -> Response {
        Response(
            status: .ok,
            headers: [.contentType: type],
            body: ResponseBody(byteBuffer: ByteBuffer(bytes: json.bytes))
        )
    }
}

extension Principal {
    /// The same one, as the agents' doors know it.
    var agent: AgentCaller {
        let nothing = Permissions([], on: .endpoints([]))
        return AgentCaller(
            caller,
            permissions: isOwner ? nil : grant?.permissions ?? nothing,
            origin: origin,
            user: user
        )
    }
}

/// The way back to an agent, over HTTP/1.1.
struct MCPResponseWriter: ~Copyable, MCPResponseBodyWriter {
    private var head: ResponseWriter?
    private var body: (any ResponseBodyWriter)?

    init(_ writer: consuming ResponseWriter) { head = consume writer }

    /// Head and body in one write: in two, the second waits for the acknowledgement of the first (Nagle), for 40 ms.
    mutating func write(_ reply: MCPHTTPResponse) async throws {
        guard let writer = head.take() else { return }
        var fields = Self.fields(reply.headers)
        // RFC 9110, section 8.6: not with 204.
        if reply.status != 204 { fields[.contentLength] = "\(reply.body.count)" }
        let response = HTTPResponse(status: HTTPResponse.Status(code: reply.status), headerFields: fields)
        guard !reply.body.isEmpty else { return try await writer.writeResponse(response) }
        try await writer.write(response: response, body: ResponseBody(byteBuffer: ByteBuffer(bytes: reply.body)))
    }

    mutating func begin(_ headers: [MCPHTTPResponse.Header]) async throws {
        guard let writer = head.take() else { return }
        body = try await writer.writeHead(HTTPResponse(status: .ok, headerFields: Self.fields(headers)))
    }

    mutating func send(_ bytes: [UInt8]) async throws { try await body?.write(ByteBuffer(bytes: bytes)) }

    mutating func end() async throws {
        guard let writer = body.take() else { return }
        try await writer.finish(nil)
    }

    private static func fields(_ headers: [MCPHTTPResponse.Header]) -> HTTPFields {
        var fields = HTTPFields()
        for header in headers {
            guard let name = HTTPField.Name(header.name) else { continue }
            fields[name] = header.value
        }
        APIServer.protect(&fields)
        return fields
    }
}
