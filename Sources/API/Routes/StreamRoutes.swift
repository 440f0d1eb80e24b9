import AccessControl
import HTTPTypes
import Hummingbird
import Model
import NIOCore
import ServiceLifecycle
import StreamBridge
import SystemIO
import Tunnels

/// `GET /v1/streams`: turns the connection of the request into a stream to an endpoint or to a port of a phone.
enum StreamRoutes {
    static let query: [APIRoute.Query] = [
        .string("endpoint", "the ID of an endpoint"),
        .string("device", "the UDID of a phone, in place of an endpoint"),
        .integer("port", "the port on the phone"),
    ]

    /// The response head after which the connection carries the bytes of the target.
    private static let head = """
        HTTP/1.1 101 Switching Protocols\r
        Connection: Upgrade\r
        Upgrade: \(TunnelTarget.streamProtocol)\r
        \r\n
        """

    /// Returns when the connection is closed. The target is dialed before the connection changes, so a failed dial is an
    /// ordinary problem. Without the header Upgrade, the response is the problem that authorization has, or 426.
    @Sendable static func open(_ request: APIRequest) async throws -> Response {
        let (channel, services) = (request.channel, request.services)
        // The HTTP decoder stops after a request with the header Upgrade, so no request can follow a refusal.
        request.cleanup.add { try? await channel.close().get() }
        let target = try request.streamTarget()
        try await request.authorizeConnection(to: target)
        try request.requireUpgrade()
        try await withGracefulShutdownHandler {
            try await services.tunnels.streams.open(target) { stream in
                if let grant = request.principal.grant {
                    let session = try services.accessStore.live.register(under: grant.id) { await stream.close() }
                    request.cleanup.add { services.accessStore.live.unregister(session) }
                }
                return try await connect(channel)
            }
            // The last bytes of the target may still be on their way to the client.
            try await channel.closeFuture.get()
        } onGracefulShutdown: {
            _ = channel.reset()
        }
        request.deferredResponse.set { _ in }
        return request.noContent
    }

    /// Sends the response, and connects the channel with a socket.
    ///
    /// - Returns: The other end of the socket.
    private static func connect(_ channel: any Channel) async throws -> Descriptor {
        let (inner, outer) = try LoopbackSocketPair().release()
        let client = Descriptor(owning: outer)
        let bridge = try await SocketBridge(channel, to: Descriptor(owning: inner)) { channel in
            // The HTTP handlers and their timeouts receive no more bytes.
            .before(try channel.pipeline.syncOperations.handler(type: RequestTimeoutHandler.self))
        }
        bridge.start(sending: ByteBuffer(string: head))
        return client
    }
}

extension APIRequest {
    /// Throws unless the client wants to change the protocol of the connection.
    fileprivate func requireUpgrade() throws {
        guard httpRequest.headers[.upgrade] == TunnelTarget.streamProtocol else {
            throw Problem(
                .upgradeRequired,
                "this request needs the headers Connection: Upgrade and Upgrade: \(TunnelTarget.streamProtocol)",
                hint: "patchbay stdio"
            )
        }
    }

    /// Returns the target of a stream. Throws unless the query names one target.
    fileprivate func streamTarget() throws -> TunnelTarget {
        let parameters = httpRequest.uri.queryParameters
        switch (parameters["endpoint"], parameters["device"], try query("port", as: UInt16.self)) {
        case (let text?, nil, nil):
            guard let id = EndpointID(String(text)) else {
                throw Problem(.notFound, "\"\(SanitizedText(text))\" is not an endpoint id", hint: "patchbay list")
            }
            return .endpoint(id)
        case (nil, let text?, let port?) where port > 0:
            guard let udid = UDID(String(text)) else {
                throw Problem(.notFound, "\"\(SanitizedText(text))\" is not a UDID", hint: "patchbay devices")
            }
            return .device(udid: udid, port: port)
        default:
            throw Problem(.badRequest, "the query must have either an endpoint, or a device and its port")
        }
    }
}
