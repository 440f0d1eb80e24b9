package import AccessControl
import HTTPTypes
import HummingbirdCore
import Agents
import Apps
import Metrics
package import Model
import NIOCore
import ServiceLifecycle

/// Passes requests for endpoints of other hosts on to the brokers of those hosts.
package struct TeamProxy: Sendable {
    let connector: any HostConnector
    let usage = HostUsage()

    /// The size in bytes up to which head and body are written together.
    private static let shortBody = 64 << 10

    package init(_ connector: any HostConnector) { self.connector = connector }

    /// Sends a request of a client, and returns the response.
    ///
    /// - Throws: `HostError`, `CancellationError`.
    func send(_ request: HostRequest, to host: HostName, for principal: Principal) async throws -> any HostResponse {
        let caller = principal.caller(at: host)
        guard let value = caller.headerValue else { throw HostError.callerTooLarge(host) }
        var request = request
        request.headers.append((TeamCaller.header, value))
        usage.record(principal, caller, at: host)
        do {
            let response = try await connector.send(request, to: host)
            Self.count("answered")
            return response
        } catch let error as HostError {
            switch error {
            case .responseLost, .silent, .wentOffline: Self.count("lost")
            case .unreachable, .absent, .callerTooLarge: Self.count("unreachable")
            }
            throw error
        }
    }

    private static func count(_ result: String) {
        Counter(label: MetricDefinition.hostRequests.name, dimensions: [("result", result)]).increment()
    }

    /// Sends a request of a client, and returns the complete response.
    ///
    /// - Throws: `HostError`, `CancellationError`; `Problem` of the other broker, with the name of its host.
    package func bytes(of request: HostRequest, to host: HostName, for principal: Principal) async throws -> [UInt8] {
        let response = try await send(request, to: host, for: principal)
        return try await Self.bytes(of: response, from: host)
    }

    /// Lets the broker of another host probe an endpoint.
    ///
    /// - Returns: The endpoint as this broker lists it, with the requested ID.
    /// - Throws: As `bytes(of:to:for:)`.
    func probe(_ id: EndpointID, on host: HostName, for principal: Principal) async throws -> Endpoint {
        let request = HostRequest(method: "POST", target: "/v1/endpoints/\(id.onItsHost)/probe")
        let bytes = try await bytes(of: request, to: host, for: principal)
        return try Self.decode(Endpoint.self, bytes, from: host).on(host, as: id)
    }

    /// Passes a request on to the broker of an endpoint's host, and the response back as it arrives.
    ///
    /// - Parameters:
    ///   - request: The request. Its body is read completely.
    ///   - path: The path at the other broker.
    ///   - host: The host of the endpoint.
    ///   - principal: The client.
    /// - Returns: The response of the other broker as a stream; the error of an MCP server as a document.
    /// - Throws: `HostError`, `CancellationError`; `Problem` for every other error, with the name of the host.
    func forward(
        _ request: APIRequest,
        to path: String,
        on host: HostName,
        for principal: Principal
    ) async throws -> APIResponse {
        let method = request.httpRequest.method
        let query = request.httpRequest.uri.query.map { "?\($0)" } ?? ""
        let body = method == .post ? try await request.bytes(upTo: MCPHTTPRequest.bodyLimit) : []
        let hostRequest = HostRequest(
            method: method.rawValue,
            target: path + query,
            headers: Self.forwarded(request.httpRequest.headers),
            body: body,
            timeout: Self.timeout(ofRequestTo: path, body)
        )
        let response = try await request.whileConnected { try await send(hostRequest, to: host, for: principal) }
        try Self.requireStatus(of: response, from: host)
        request.disconnectHandler.onDisconnect { response.close() }
        request.cleanup.add { response.close() }
        if let error = try await Self.error(in: response, from: host, isMCP: path.hasPrefix("/e/")) {
            return .json(error, status: HTTPResponse.Status(code: response.status))
        }
        return .stream { writer in
            var writer = Optional(writer)
            // A stream without an end must not delay the stop of the broker.
            try await withGracefulShutdownHandler {
                if let writer = writer.take() { try await Self.write(response, from: host, to: writer) }
            } onGracefulShutdown: {
                if method == .get { response.close() }
            }
        }
    }

    /// Returns the time limit of a forwarded request. A message to an MCP server may be a call.
    static func timeout(ofRequestTo path: String, _ body: [UInt8]) -> Duration {
        if path.hasSuffix("/tools") { return HostRequest.standardTimeout }
        guard path.hasSuffix("/call"), let call = try? ToolCallRequest(body) else { return HostRequest.timeout() }
        return HostRequest.timeout(
            ofCall: call.timeoutSeconds.map { .seconds($0) },
            wait: .seconds(call.waitSeconds)
        )
    }

    private static func write(
        _ response: any HostResponse,
        from host: HostName,
        to writer: consuming ResponseWriter
    ) async throws {
        let headers = HostResponseHeaders(response.headers)
        headers.count(of: host)
        var fields = headers.fields
        APIServer.setSecurityHeaders(&fields)
        let head = HTTPResponse(status: HTTPResponse.Status(code: response.status), headerFields: fields)
        if let text = head.headerFields[.contentLength], let length = Int(text), length <= shortBody {
            var body = ByteBuffer()
            while var part = try await response.next() { body.writeBuffer(&part) }
            return try await writer.write(response: head, body: ResponseBody(byteBuffer: body))
        }
        if response.status == 204 { return try await writer.writeResponse(head) }
        let body = try await writer.writeHead(head)
        try await pump(response, to: body)
    }

    private static func pump(_ response: any HostResponse, to body: some ResponseBodyWriter) async throws {
        var body = body
        while let part = try await response.next() { try await body.write(part) }
        try await body.finish(nil)
    }

    /// The headers of a client's request that the other broker needs. No header with a credential is among them.
    static func forwarded(_ fields: HTTPFields) -> [(name: String, value: String)] {
        fields.compactMap { field in
            let name = field.name.canonicalName
            let isForwarded =
                ["accept", "content-type", "last-event-id", "user-agent"].contains(name) || name.hasPrefix("mcp-")
            return isForwarded ? (field.name.rawName, field.value) : nil
        }
    }
}

extension Principal {
    /// The client as the broker of another host sees it.
    func caller(at host: HostName) -> TeamCaller {
        let holder = leaseHolder
        return TeamCaller(
            holder: holder.key,
            name: holder.name,
            isAgent: holder.isAgent,
            permissions: (isOwner ? .ofOwner : permissions ?? Permissions([], on: .endpoints([]))).asserted(to: host)
        )
    }
}

extension Permissions {
    /// Every permission.
    package static let ofOwner = Permissions(Set(Scope.allCases), on: .all)
}
