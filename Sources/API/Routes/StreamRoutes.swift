import AccessControl
import HTTPTypes
import HummingbirdCore
import Model
import NIOCore
import NIOHTTP1
import NIOHTTPTypesHTTP1
import ServiceLifecycle
import SystemIO
import Transport
import Tunnels

/// `GET /v1/streams`: turns the connection of the request into a stream to an endpoint or to a socket of a phone.
enum StreamRoutes {
    static let query: [APIRoute.Query] = [
        .string("endpoint", "the ID of an endpoint"),
        .string("device", "the UDID of a phone, in place of an endpoint"),
        .integer("port", "the port on the phone"),
        .string("abstractSocket", "the abstract socket of an Android phone, in place of a port"),
    ]

    /// The response head after which the connection carries the bytes of the target.
    private static let head = """
        HTTP/1.1 101 Switching Protocols\r
        Connection: Upgrade\r
        Upgrade: \(TunnelTarget.streamProtocol)\r
        \r\n
        """

    /// Returns when the connection is closed. The target is dialed before the connection changes, so a failed dial is an
    /// ordinary problem. Without a valid upgrade, the response is the problem that authorization has, or 426.
    @Sendable static func open(_ request: APIRequest) async throws -> APIResponse {
        let (channel, services) = (request.channel, request.services)
        let target = try request.streamTarget()
        try await request.authorizeConnection(to: target)
        try requireUpgrade(request.httpRequest.headers)
        try request.requireStreamPlace()
        let owner = TunnelOwner(user: request.principal.user, holder: request.principal.leaseHolder.agentKey)
        // A cancellation means that the listener closes, as at `remote off`.
        try await withTaskCancellationOrGracefulShutdownHandler {
            try await request.whileConnected {
                try await services.tunnels.streams.open(target, for: owner) { stream in
                    if let grant = request.principal.credential {
                        let session = try services.accessStore.live.register(under: grant.id) { await stream.close() }
                        request.cleanup.add { services.accessStore.live.unregister(session) }
                    }
                    return try await connect(channel, request.disconnectHandler)
                }
            }
            // The last bytes of the target may still be on their way to the client.
            try await channel.closeFuture.get()
        } onCancelOrGracefulShutdown: {
            _ = channel.reset()
        }
        // `connect` has written the response.
        return .stream { _ in }
    }

    /// Sends the response, and connects the channel with a socket, which first receives the bytes that the client has sent
    /// already. An end of input before the response ends the stream, and a later one is an end of one direction.
    ///
    /// - Returns: The other end of the socket.
    private static func connect(_ channel: any Channel, _ disconnects: DisconnectHandler) async throws -> Descriptor {
        let (inner, outer) = try loopbackSocketPair()
        let client = Descriptor(owning: outer)
        let bridge = try await SocketBridge(channel, to: Descriptor(owning: inner)) { channel in
            let timeoutHandler = try channel.pipeline.syncOperations.handler(type: RequestTimeoutHandler.self)
            guard !disconnects.isDisconnected else { throw CancellationError() }
            disconnects.onDisconnect {}
            // The HTTP handlers and their timeouts receive no more bytes.
            return SocketBridge.Attachment(.before(timeoutHandler), received: timeoutHandler.unparsed)
        }
        bridge.start(sending: ByteBuffer(string: head))
        return client
    }

    /// Throws unless the client changes the protocol of the connection with this request (RFC 9110, section 7.8).
    ///
    /// A body is refused: the bytes behind the head would be either the body or the stream.
    static func requireUpgrade(_ headers: HTTPFields) throws(Problem) {
        let lists = HTTPHeaders(headers)
        guard lists[canonicalForm: "Connection"].contains(where: { $0.lowercased() == "upgrade" }),
            lists[canonicalForm: "Upgrade"].contains(where: { $0.lowercased() == TunnelTarget.streamProtocol })
        else {
            throw Problem(
                .upgradeRequired,
                "this request needs HTTP/1.1, Connection: Upgrade and Upgrade: \(TunnelTarget.streamProtocol)",
                hint: "patchbay stdio"
            )
        }
        guard headers[.transferEncoding] == nil, headers[.contentLength] ?? "0" == "0" else {
            throw Problem(.badRequest, "a request for a stream has no body; send the bytes after the response")
        }
    }
}

extension APIRequest {
    /// Returns the target of a stream. Throws unless the query names one target.
    fileprivate func streamTarget() throws -> TunnelTarget {
        switch (
            query("endpoint"), query("device"),
            try DeviceSocket(port: query("port", as: UInt16.self), abstractSocket: query("abstractSocket"))
        ) {
        case (let text?, nil, nil):
            return .endpoint(try endpointID(text))
        case (nil, let text?, let socket?):
            guard let udid = UDID(text) else {
                throw Problem(.notFound, "\"\(SanitizedText(text))\" is not a UDID", hint: "patchbay devices")
            }
            return .device(USBRoute(udid: udid, socket: socket))
        default:
            throw Problem(
                .badRequest,
                "the query must have either an endpoint, or a device and its port or abstract socket"
            )
        }
    }
}

extension DeviceSocket {
    /// Returns nil unless exactly one of the values is given.
    fileprivate init?(port: UInt16?, abstractSocket text: String?) throws {
        switch (port, text) {
        case (let port?, nil) where port > 0: self = .port(port)
        case (nil, let text?):
            guard let name = AbstractSocketName(text) else {
                throw Problem(.badRequest, "\"\(SanitizedText(text))\" is not the name of an abstract socket")
            }
            self = .abstract(name)
        default: return nil
        }
    }
}
