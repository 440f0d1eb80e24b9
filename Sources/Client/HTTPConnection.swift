import FoundationEssentials
import Glibc
import Model
package import NIOCore
import NIOHTTP1
import NIOPosix
import SystemIO
import Transport

/// A connection to the broker for one request. Opens at the begin of the request and closes at its end.
package struct HTTPConnection: Sendable {
    private typealias Stream = NIOAsyncChannel<HTTPClientResponsePart, HTTPClientRequestPart>

    package let address: BrokerAddress
    /// Time without received data after which the request fails.
    let idleTimeout: Duration
    /// The time for connect(2) to one address; nil for `idleTimeout`.
    var connectTimeout: Duration?
    /// The token to send. Without one, the broker identifies the process by its user.
    var token: AccessToken?
    /// Headers of every request, in addition to those of the request itself.
    var headers: [(name: String, value: String)] = []
    /// TLS for a remote address.
    var security: (any ClientTransportSecurity)?

    /// Maximum size of a response body in bytes. A list of 1,024 endpoints of maximum size is below 4 MiB.
    static let bodyLimit = 16 << 20

    /// Sends a request and passes the body of a successful response to `receive`, chunk by chunk.
    ///
    /// Returns at the end of the response.
    /// - Returns: The headers of the response.
    /// - Throws: `ClientError`, `CancellationError`, or the error of `receive`.
    @discardableResult
    func perform(_ request: OutgoingRequest, _ receive: (ByteBuffer) async throws -> Void) async throws -> HTTPHeaders {
        var status = HTTPResponseStatus.ok
        var headers = HTTPHeaders()
        var errorBody: [UInt8] = []
        try await exchange(request) { head in
            (status, headers) = (head.status, head.headers)
        } body: { bytes in
            if (200..<300).contains(status.code) { return try await receive(bytes) }
            errorBody += bytes.readableBytesView
            if errorBody.count > 64 << 10 { throw invalidResponse(to: request, "an error of more than 64 KiB") }
        }
        guard (200..<300).contains(status.code) else { throw Self.refused(request, status: status, body: errorBody) }
        return headers
    }

    /// Sends a request and passes on its response, whatever its status.
    ///
    /// Returns at the end of the response. Calls `onSent` when the request is written. From then on the broker may have
    /// executed the request, even if no response arrives.
    /// - Throws: `ClientError`, `CancellationError`, or the error of `head` and `body`.
    func exchange(
        _ request: OutgoingRequest,
        onSent: () -> Void = {},
        head: (HTTPResponseHead) async throws -> Void,
        body: (ByteBuffer) async throws -> Void
    ) async throws {
        let stream = try await connect(for: request)
        var thrownByReceiver: (any Error)?
        do {
            try await stream.executeThenClose { inbound, outbound in
                var received = inbound.makeAsyncIterator()
                if case .ssh = address { try await awaitBroker(&received, outbound) }
                // The broker may have responded and closed already, for example after rejecting the head. Its response
                // can still be read; a missing response is detected below.
                try? await outbound.write(contentsOf: parts(of: request))
                // `write` returns before the event loop has written. This task runs on the loop after the write.
                try? await stream.channel.eventLoop.submit {}.get()
                onSent()
                while let part = try await received.next() {
                    do {
                        switch part {
                        case .head(let part): try await head(part)
                        case .body(let bytes): try await body(bytes)
                        case .end: return
                        }
                    } catch {
                        thrownByReceiver = error
                        throw error
                    }
                }
                try Task.checkCancellation()
                throw ClientError.connectionLost(what: request.name)
            }
        } catch {
            if let thrownByReceiver { throw thrownByReceiver }
            throw await reasonOfSSH(translated(error, request))
        }
    }

    private func parts(of request: OutgoingRequest) -> [HTTPClientRequestPart] {
        let body = request.body.map { [HTTPClientRequestPart.body(.byteBuffer(ByteBuffer(bytes: $0)))] } ?? []
        return [.head(head(of: request))] + body + [.end(nil)]
    }

    func head(of request: OutgoingRequest) -> HTTPRequestHead {
        var head = request.head(host: address.host)
        head.headers.add(name: "Connection", value: "close")
        if let (name, value) = token?.header { head.headers.add(name: name, value: value) }
        head.headers.add(contentsOf: headers.map { ($0.name, $0.value) })
        return head
    }

    private func connect(for request: OutgoingRequest) async throws -> Stream {
        let timeout = TimeAmount(idleTimeout)
        let timeoutError = timeoutError(of: request)
        return try await connect(for: request) { channel in
            try channel.pipeline.syncOperations.addHandler(IdleStateHandler(readTimeout: timeout))
            try channel.pipeline.syncOperations.addHandler(IdleTimeoutHandler(error: timeoutError))
            try channel.pipeline.syncOperations.addHTTPClientHandlers()
            return try Stream(wrappingChannelSynchronously: channel)
        }
    }

    func timeoutError(of request: OutgoingRequest) -> ClientError {
        .timedOut(what: request.name, seconds: Double(TimeAmount(idleTimeout).nanoseconds) / 1e9)
    }

    /// Connects to the broker, with TLS in front of the handlers that `initialize` adds.
    package func connect<Output: Sendable>(
        for request: OutgoingRequest,
        initialize: @escaping @Sendable (any Channel) throws -> Output
    ) async throws -> Output {
        if case .unix(let path) = address {
            guard path.hasPrefix("/") else { throw ClientError.unusablePath(path: path, reason: "it is not absolute") }
            guard path.utf8.count <= ListenAddress.pathLimit else {
                throw ClientError.unusablePath(path: path, reason: "it has \(path.utf8.count) bytes")
            }
        }
        do {
            let bootstrap = ClientBootstrap(group: MultiThreadedEventLoopGroup.singleton)
                .connectTimeout(TimeAmount(connectTimeout ?? idleTimeout))
            let initialize = { @Sendable [address, security] (channel: any Channel) in
                channel.eventLoop.makeCompletedFuture {
                    let output = try initialize(channel)
                    if case .remote(_, _, let pin) = address {
                        try channel.setKeepAlive()
                        // TLS holds back every byte of the request until the broker has proved that it has the pinned key.
                        try security?.secure(channel, pin: pin)
                    }
                    return output
                }
            }
            switch address {
            case .unix(let path):
                return try await bootstrap.connect(unixDomainSocketPath: path, channelInitializer: initialize)
            case .ssh(let destination):
                let socket = try await SSHForward.to(destination).localSocket()
                return try await bootstrap.connect(unixDomainSocketPath: socket.path, channelInitializer: initialize)
            case .remote(let host, let port, _):
                return try await bootstrap.connect(host: host, port: Int(port), channelInitializer: initialize)
            case .loopback(let host, let port):
                return try await bootstrap.connect(
                    to: NIOCore.SocketAddress(ipAddress: host, port: Int(port)),
                    channelInitializer: initialize
                )
            }
        } catch {
            throw await reasonOfSSH(translated(error, request))
        }
    }

    /// Maps errors of NIO and errno to `ClientError`. No other code in this module inspects them.
    func translated(_ error: any Error, _ request: OutgoingRequest) -> any Error {
        if let failure = failure(ofRemote: error, request) { return failure }
        let path = address.description
        switch error {
        case is ClientError, is CancellationError: return error
        case let error as IOError:
            switch error.errnoCode {
            case ENOENT, ECONNREFUSED, ENOTDIR, ENOTSOCK, EPROTOTYPE:
                guard let kind = fileKind else { return ClientError.brokerNotRunning(path: path) }
                return ClientError.unusablePath(path: path, reason: "it is \(kind)")
            case EACCES, EPERM: return ClientError.notPermitted(path: path)
            // unix(7): a non-blocking connect to a full accept queue.
            case EAGAIN: return ClientError.busy(path: path)
            case ECONNRESET, EPIPE: return ClientError.connectionLost(what: request.name)
            default: return invalidResponse(to: request, "\(error)")
            }
        case HTTPParserError.invalidEOFState: return ClientError.connectionLost(what: request.name)
        case is HTTPParserError: return invalidResponse(to: request, "it is not HTTP; is \(path) a broker's socket?")
        case is ChannelError: return ClientError.connectionLost(what: request.name)
        default: return invalidResponse(to: request, "\(error)")
        }
    }

    /// The kind of file at the path; nil for a socket. connect(2) also fails with ECONNREFUSED in that case.
    private var fileKind: String? {
        guard case .unix(let path) = address, let status = FileStatus(atPath: path) else { return nil }
        return switch status.type {
        case .socket: nil
        case .folder: "a folder"
        default: "a file"
        }
    }

    static func refused(
        _ request: OutgoingRequest,
        status: HTTPResponseStatus,
        body: [UInt8]
    ) -> ClientError {
        guard let problem = try? JSONCoding.decoder().decode(Problem.self, from: Data(body)) else {
            return .invalidResponse(
                what: "the answer to \(request.name)",
                detail: "status \(status.code) without a JSON problem document"
            )
        }
        return .refused(problem)
    }

    private func invalidResponse(to request: OutgoingRequest, _ detail: String) -> ClientError {
        .invalidResponse(what: "the answer to \(request.name)", detail: detail)
    }
}

/// Closes a connection that received nothing for too long. Requires an `IdleStateHandler` before it in the pipeline.
///
/// A broker that is stopped (SIGSTOP) or hangs keeps its sockets open, so only a timeout detects it.
final class IdleTimeoutHandler: ChannelInboundHandler {
    typealias InboundIn = NIOAny

    private let error: ClientError

    init(error: ClientError) { self.error = error }

    func userInboundEventTriggered(context: ChannelHandlerContext, event: Any) {
        guard event is IdleStateHandler.IdleStateEvent else {
            context.fireUserInboundEventTriggered(event)
            return
        }
        context.fireErrorCaught(error)
        context.close(promise: nil)
    }
}
