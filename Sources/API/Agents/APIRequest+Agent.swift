import HTTPTypes
import Hummingbird
import HummingbirdCore
import JSON
import MCP
import Model
import NIOCore
import SystemIO

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
