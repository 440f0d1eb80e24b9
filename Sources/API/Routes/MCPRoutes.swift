import AccessControl
import Agents
import Apps
import HTTPTypes
import HummingbirdCore
import Model
import NIOCore
import Registry
import SystemIO

/// MCP (`/mcp`, `/e/{id}/mcp`, `/all/mcp`), and an app's tools over plain HTTP under `/v1/endpoints`.
enum MCPRoutes {
    @Sendable static func broker(_ request: APIRequest) async throws -> APIResponse {
        try await request.respond(with: request.services.mcp.broker)
    }

    @Sendable static func app(_ request: APIRequest) async throws -> APIResponse {
        // The approval is checked when the endpoint is dialled.
        let endpoint = try await request.services.endpoints.endpoint(try request.endpointID())
        guard request.principal.canSee(endpoint) else { throw RegistryError.noSuchEndpoint(endpoint.id.text) }
        return try await request.respond(with: request.services.mcp.app(endpoint.id), of: endpoint.id)
    }

    @Sendable static func all(_ request: APIRequest) async throws -> APIResponse {
        guard let all = request.services.mcp.all else {
            throw Problem(
                .notFound,
                "the MCP server of all apps is disabled",
                hint: "set all = true in the table [mcp] of the configuration"
            )
        }
        return try await request.respond(with: all)
    }

    @Sendable static func tools(_ request: APIRequest) async throws -> APIResponse {
        let endpoint = try await request.endpoint()
        let (apps, principal) = (request.services.mcp.apps, request.principal)
        let id = principal.knownID(of: endpoint.id)
        let list: AppToolList
        do {
            list = try await request.whileConnected { try await apps.tools(of: endpoint, for: principal) }
        } catch let failure as AppError {
            throw failure.problem(at: id)
        }
        var document: JSONObject = [
            "schema": 1, "tools": .array(list.tools.map(JSON.object)), "stale": .bool(list.isStale),
            "changed": .bool(list.hasChanged),
        ]
        if principal.tools != .all { document["limit"] = .string("\(principal.tools)") }
        if let staleness = list.staleness {
            document["reason"] = .string(staleness.description(at: id))
            document["hint"] = .string(staleness.hint(for: .human, at: id))
        }
        return .json(.object(document))
    }

    /// Calls a tool of an app. If the call reached the app, the response is a result, and `isError` reports a failure
    /// there. Otherwise the response is a problem, as on every route.
    @Sendable static func call(_ request: APIRequest) async throws -> APIResponse {
        let endpoint = try await request.endpoint()
        let body = try await request.bytes(upTo: MCPHTTPRequest.bodyLimit)
        let toolCall = try ToolCallRequest(body)
        // Naming an endpoint does not approve the endpoint.
        do { try await request.requireApproval(of: endpoint) } catch {
            request.services.mcp.activity?.log.refuse(
                toolCall.tool,
                toolCall.arguments,
                at: endpoint.id,
                for: request.principal,
                as: .notApproved
            )
            throw error
        }
        let appCall = ToolCall(
            toolCall.tool,
            of: endpoint,
            arguments: toolCall.arguments,
            wait: .seconds(toolCall.waitSeconds),
            timeout: toolCall.timeoutSeconds.map { .seconds($0) },
            maxPixels: toolCall.maxPixels,
            imageFormat: toolCall.imageFormat,
            trace: CallTrace(
                header: TraceContext { RequestValidator.values(of: $0, in: request.httpRequest.head) }
            )
        )
        let (apps, principal) = (request.services.mcp.apps, request.principal)
        let id = principal.knownID(of: endpoint.id)
        let result: JSONObject
        do {
            result = try await request.whileConnected { try await apps.call(appCall, of: principal) }
        } catch let failure as AppError {
            guard failure.isDelivered else { throw failure.problem(at: id) }
            result = failure.result(for: .human, at: id)
        }
        return .json(["schema": 1, "result": .object(result)])
    }
}

/// The body of `POST /v1/endpoints/{id}/call`.
struct ToolCallRequest: Hashable {
    let tool: String
    let arguments: JSONObject
    let waitSeconds: Int
    let timeoutSeconds: Int?
    let maxPixels: Int
    let imageFormat: ImageFormat?

    /// - Throws: `Problem` that names the invalid member.
    init(_ body: [UInt8]) throws(Problem) {
        let json: JSON
        do { json = try JSON(parsing: body) } catch { throw Problem(.badRequest, "the body cannot be read: \(error)") }
        try UnknownMemberCheck.check(json, against: "ToolCallRequest")
        guard let tool = json["tool"]?.string, !tool.isEmpty else {
            throw Self.invalid("tool", expected: "the tool's name, a text", found: json["tool"])
        }
        guard let arguments = (json["arguments"] ?? [:]).object else {
            throw Self.invalid("arguments", expected: "an object", found: json["arguments"])
        }
        self.tool = tool
        self.arguments = arguments
        waitSeconds = try Self.number("waitSeconds", in: json, range: 0...60) ?? 10
        timeoutSeconds = try Self.number("timeoutSeconds", in: json, range: 1...120)
        maxPixels = try Self.number("maxPixels", in: json, range: 0...4_096) ?? 1_568
        imageFormat = json["imageFormat"]?.string.flatMap(ImageFormat.init(rawValue:))
        if let format = json["imageFormat"], imageFormat == nil {
            throw Self.invalid("imageFormat", expected: "\"png\" or \"jpeg\"", found: format)
        }
    }

    private static func number(_ name: String, in json: JSON, range: ClosedRange<Int>) throws(Problem) -> Int? {
        guard let value = json[name] else { return nil }
        guard let number = value.int, range.contains(number) else {
            throw invalid(
                name,
                expected: "a whole number from \(range.lowerBound) to \(range.upperBound)",
                found: value
            )
        }
        return number
    }

    private static func invalid(_ name: String, expected: String, found: JSON?) -> Problem {
        let found =
            found.map { $0.number.map { SanitizedText($0.text, limit: 40).text } ?? $0.typeDescription } ?? "absent"
        return Problem(.badRequest, "\"\(name)\" must be \(expected), not \(found)")
    }
}

/// MCP over HTTP, and raw JSON.
extension APIRequest {
    /// Answers an MCP request with a handler.
    func respond(with handler: any MCPRequestHandler, of endpoint: EndpointID? = nil) async throws -> APIResponse {
        guard let method = MCPHTTPRequest.Method(rawValue: httpRequest.method.rawValue) else {
            throw Problem(.methodNotAllowed, "MCP does not use \(httpRequest.method)")
        }
        // MCP 2026-07-28 has a request in place of the stream of a session, and names the method of a request in a header.
        let isStream =
            method == .get
            || RequestValidator.values(of: "Mcp-Method", in: httpRequest.head) == ["subscriptions/listen"]
        if isStream { try requireStreamPlace() }
        let body = method == .post ? try await bytes(upTo: MCPHTTPRequest.bodyLimit) : []
        if issuer != nil { try InsufficientScope.check(body, to: handler, of: principal.grant) }
        let mcpRequest = MCPHTTPRequest(
            method,
            headers: MCPRequestHeaders(
                values: { RequestValidator.values(of: $0, in: httpRequest.head) },
                fields: httpRequest.headers.lazy.map { ($0.name.rawName, $0.value) }
            ),
            body: body
        ) { [disconnectHandler] in disconnectHandler.onDisconnect($0) }
        let (mcp, principal) = (services.mcp, principal.asMCPClient)
        let transport = StreamableHTTPTransport(
            handler,
            endpoint: endpoint,
            sessions: mcp.sessions,
            keepAliveTimer: mcp.keepAliveTimer,
            artifacts: mcp.artifacts
        )
        return .stream { writer in
            var response = MCPResponseWriter(writer)
            try await transport.serve(mcpRequest, of: principal, to: &response)
        }
    }

    /// Runs a closure that is cancelled when the client disconnects. The body of the request must have been read.
    ///
    /// - Throws: Errors of the closure; `CancellationError` after a disconnect.
    func whileConnected<Value: Sendable>(_ body: @escaping @Sendable () async throws -> Value) async throws -> Value {
        let disconnected = Promise<Void>()
        disconnectHandler.onDisconnect { disconnected.complete(.success(())) }
        guard let value = try await withCancellation(when: { try await disconnected.value() }, body) else {
            throw CancellationError()
        }
        return value
    }

    /// Returns the body as bytes, without a byte order mark. The request must declare JSON.
    func bytes(upTo limit: Int) async throws -> [UInt8] {
        try requireJSON()
        return Array(try await collect(upTo: limit).readableBytesView.withoutByteOrderMark)
    }
}

/// Writes an MCP response over HTTP/1.1.
struct MCPResponseWriter: ~Copyable, MCPResponseBodyWriter {
    private var head: ResponseWriter?
    private var body: (any ResponseBodyWriter)?

    init(_ writer: consuming ResponseWriter) { head = consume writer }

    /// Writes head and body together. If written separately, the body would wait 40 ms for the acknowledgement of the
    /// head (Nagle).
    mutating func write(_ reply: MCPHTTPResponse) async throws {
        guard let writer = head.take() else { return }
        var fields = Self.fields(reply.headers)
        // RFC 9110, section 8.6: a 204 response must not have a Content-Length.
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
        APIServer.setSecurityHeaders(&fields)
        return fields
    }
}
