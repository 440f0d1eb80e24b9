import AccessControl
import Agents
import Apps
import Client
import FoundationEssentials
import HTTPTypes
import HummingbirdCore
import Model
import NIOCore
import NIOHTTP1
import Registry
import ServiceLifecycle
import Team

/// The way in which a route serves a request for an endpoint of another host.
enum OtherHosts: Hashable, Sendable {
    /// This broker serves the request by what it knows. Other brokers send no such request.
    case here
    /// The handler asks the other host. Brokers send such requests to each other.
    case asked
    /// The broker of the endpoint's host serves the request.
    case forwarded(Forwarded)
    /// The request is refused, because only an owner on that host may make it.
    case refused

    /// The requests that are passed on to another broker.
    enum Forwarded: Hashable, Sendable {
        /// A message to the MCP server of an app, which may be a call.
        case mcp
        /// A request for the tools of an app.
        case tools
        /// A call of a tool.
        case call
    }

    /// True if other brokers send such requests.
    var isBetweenHosts: Bool {
        switch self {
        case .here, .refused: false
        case .asked, .forwarded: true
        }
    }
}

extension APIRoute {
    /// Throws unless the principal may use the route. A client of another host uses only the routes to which its own
    /// broker sends requests.
    func authorize(_ principal: Principal) throws {
        if principal.member != nil, !otherHosts.isBetweenHosts {
            throw Problem(
                .forbidden,
                "the team listener serves hosts only requests for apps, streams, leases and artifacts",
                hint: "use the remote listener: patchbay remote status"
            )
        }
        try permission.authorize(principal)
    }
}

extension APIRequest {
    /// The ID of the path if the endpoint belongs to another host; nil for any other request.
    private var endpointOnOtherHost: EndpointID? {
        guard parameters["id"] != nil, let id = try? endpointID(), id.host != nil else { return nil }
        return id
    }

    /// Serves a request for an endpoint of another host, as its route says. Returns nil if the handler serves it.
    ///
    /// - Throws: `RegistryError` for an endpoint that the principal may not see; `HostError`, `Problem`.
    func forward(from route: APIRoute) async throws -> APIResponse? {
        guard let id = endpointOnOtherHost, let host = id.host else { return nil }
        let kind: OtherHosts.Forwarded
        switch route.otherHosts {
        case .here, .asked: return nil
        case .refused: throw RegistryError.onOtherHost(id, host)
        case .forwarded(let forwarded): kind = forwarded
        }
        let endpoint = try await endpoint(id)
        do {
            return try await services.team.proxy.forward(
                self,
                as: kind,
                to: route.path.replacing("{id}", with: endpoint.id.onItsHost.text),
                on: host,
                for: kind == .mcp ? principal.asMCPClient : principal
            )
        } catch let error as HostError {
            // As for an app of this broker: a call that may have been executed has a result.
            guard kind == .call, let failure = error.unknownResult else { throw error }
            return .json(["schema": 1, "result": .object(failure.result(for: .human, at: endpoint.id))])
        }
    }

    /// Lets the broker of another host probe an endpoint, and returns the endpoint as this broker lists it.
    func probe(_ endpoint: Endpoint, on host: HostName) async throws -> APIResponse {
        let (principal, proxy) = (principal, services.team.proxy)
        let probed = try await whileConnected { try await proxy.probe(endpoint.id, on: host, for: principal) }
        return try .json(services.leases.withLeases([principal.view(of: probed)], for: principal)[0])
    }
}

extension TeamProxy {
    /// The size in bytes up to which head and body are written together.
    private static let shortBody = 64 << 10

    /// Passes a request on to the broker of an endpoint's host, and the response back as it arrives.
    ///
    /// - Parameters:
    ///   - request: The request. Its body is read completely.
    ///   - kind: The kind of the request.
    ///   - path: The path at the other broker.
    ///   - host: The host of the endpoint.
    ///   - principal: The client.
    /// - Returns: The response of the other broker as a stream; the error of an MCP server as a document.
    /// - Throws: `HostError`, `CancellationError`; `Problem` for every other error, with the name of the host.
    func forward(
        _ request: APIRequest,
        as kind: OtherHosts.Forwarded,
        to path: String,
        on host: HostName,
        for principal: Principal
    ) async throws -> APIResponse {
        let method = request.httpRequest.method
        let query = request.httpRequest.uri.query.map { "?\($0)" } ?? ""
        let body = method == .post ? try await request.bytes(upTo: MCPHTTPRequest.bodyLimit) : []
        let hostRequest = OutgoingRequest(
            method: HTTPMethod(rawValue: method.rawValue),
            target: path + query,
            headers: Self.forwarded(request.httpRequest.headers),
            body: body.isEmpty ? nil : body
        )
        let timeout = Self.timeout(of: kind, body)
        let response = try await request.whileConnected {
            try await send(hostRequest, to: host, for: principal, within: timeout)
        }
        try Self.requireStatus(of: response, from: host)
        request.disconnectHandler.onDisconnect { response.close() }
        request.cleanup.add { response.close() }
        if let error = try await Self.error(in: response, from: host, isMCP: kind == .mcp) {
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
    static func timeout(of kind: OtherHosts.Forwarded, _ body: [UInt8]) -> Duration {
        if kind == .tools { return standardTimeout }
        guard kind == .call, let call = try? ToolCallRequest(body) else { return timeout() }
        return timeout(
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

    private static let forwardedNames: Set = [
        "accept", "content-type", "last-event-id", "user-agent", TraceContext.parentName, TraceContext.stateName,
    ]

    /// The headers of a client's request that the other broker needs. No header with a credential is among them.
    static func forwarded(_ fields: HTTPFields) -> [(name: String, value: String)] {
        fields.compactMap { field in
            let name = field.name.canonicalName
            let isForwarded =
                forwardedNames.contains(name) || name.hasPrefix("mcp-")
            return isForwarded ? (field.name.rawName, field.value) : nil
        }
    }
}
