import FoundationEssentials
import Glibc
import Model
import NIOCore
import NIOHTTP1
import NIOPosix

/// One connection to the broker for one call: connected when it begins, closed when it ends.
struct HTTPConnection: Sendable {
    private typealias Stream = NIOAsyncChannel<HTTPClientResponsePart, HTTPClientRequestPart>

    let address: BrokerAddress
    /// Nothing received for so long ends the call.
    let silence: Duration
    /// Shown with the call; without one it is the process that counts.
    var token: AccessToken?

    /// A list of 1,024 endpoints at their limits is below 4 MiB.
    static let bodyLimit = 16 << 20

    /// Sends the call and gives the body of a successful answer, piece by piece, to `receive`.
    ///
    /// Returns when the answer has ended.
    /// - Throws: `ClientError`, `CancellationError`, or what `receive` throws.
    func perform(_ call: OutgoingRequest, _ receive: (ByteBuffer) async throws -> Void) async throws {
        var status = HTTPResponseStatus.ok
        var refusal: [UInt8] = []
        try await exchange(call) { head in
            status = head.status
        } body: { bytes in
            if (200..<300).contains(status.code) { return try await receive(bytes) }
            refusal += bytes.readableBytesView
            if refusal.count > 64 << 10 { throw garbage(call, "an error of more than 64 KiB") }
        }
        guard (200..<300).contains(status.code) else { throw Self.refused(call, status, refusal) }
    }

    /// Sends the call and gives its answer as it comes, whatever its status.
    ///
    /// Returns when the answer has ended. `sent` is called when the call is written: from then on it may have been carried
    /// out, whatever becomes of the answer.
    /// - Throws: `ClientError`, `CancellationError`, or what `head` and `body` throw.
    func exchange(
        _ call: OutgoingRequest,
        sent: () -> Void = {},
        head: (HTTPResponseHead) async throws -> Void,
        body: (ByteBuffer) async throws -> Void
    ) async throws {
        let stream = try await connect(for: call)
        var thrownByReceiver: (any Error)?
        do {
            try await stream.executeThenClose { inbound, outbound in
                // The broker may have answered and closed already (a refusal by the head alone does); what it said is
                // still there to be read, and if it said nothing, the loop below finds that out.
                try? await outbound.write(contentsOf: parts(of: call))
                // That returns when the channel's loop has been told to write. When the loop comes to this, it has.
                try? await stream.channel.eventLoop.submit {}.get()
                sent()
                for try await part in inbound {
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
                throw ClientError.connectionLost(what: call.name)
            }
        } catch {
            throw thrownByReceiver ?? translated(error, call)
        }
    }

    private func parts(of call: OutgoingRequest) -> [HTTPClientRequestPart] {
        let body = call.body.map { [HTTPClientRequestPart.body(.byteBuffer(ByteBuffer(bytes: $0)))] } ?? []
        var head = call.head(host: address.host)
        if let (name, value) = token?.header { head.headers.add(name: name, value: value) }
        return [.head(head)] + body + [.end(nil)]
    }

    private func connect(for call: OutgoingRequest) async throws -> Stream {
        if case .unix(let path) = address {
            guard path.hasPrefix("/") else { throw ClientError.unusablePath(path: path, reason: "it is not absolute") }
            guard path.utf8.count <= ListenAddress.pathLimit else {
                throw ClientError.unusablePath(path: path, reason: "it has \(path.utf8.count) bytes")
            }
        }
        let timeout = TimeAmount(silence)
        let tooSilent = ClientError.timedOut(what: call.name, seconds: Double(timeout.nanoseconds) / 1e9)
        do {
            let bootstrap = ClientBootstrap(group: MultiThreadedEventLoopGroup.singleton).connectTimeout(timeout)
            let initialize = { @Sendable (channel: any Channel) in
                channel.eventLoop.makeCompletedFuture {
                    try channel.pipeline.syncOperations.addHandler(IdleStateHandler(readTimeout: timeout))
                    try channel.pipeline.syncOperations.addHandler(IdleTimeoutHandler(error: tooSilent))
                    try channel.pipeline.syncOperations.addHTTPClientHandlers()
                    return try Stream(wrappingChannelSynchronously: channel)
                }
            }
            switch address {
            case .unix(let path):
                return try await bootstrap.connect(unixDomainSocketPath: path, channelInitializer: initialize)
            case .loopback(let host, let port):
                return try await bootstrap.connect(
                    to: NIOCore.SocketAddress(ipAddress: host, port: Int(port)),
                    channelInitializer: initialize
                )
            }
        } catch {
            throw translated(error, call)
        }
    }

    /// What went wrong in the words of this module: the one place where errno and NIO's errors are read.
    private func translated(_ error: any Error, _ call: OutgoingRequest) -> any Error {
        let path = address.description
        switch error {
        case is ClientError, is CancellationError: return error
        case let error as IOError:
            switch error.errnoCode {
            case ENOENT, ECONNREFUSED, ENOTDIR, ENOTSOCK, EPROTOTYPE:
                guard let kind = kindOfFile else { return ClientError.brokerNotRunning(path: path) }
                return ClientError.unusablePath(path: path, reason: "it is \(kind)")
            case EACCES, EPERM: return ClientError.notPermitted(path: path)
            // unix(7): a non-blocking connect to a full accept queue.
            case EAGAIN: return ClientError.busy(path: path)
            case ECONNRESET, EPIPE: return ClientError.connectionLost(what: call.name)
            default: return garbage(call, "\(error)")
            }
        case HTTPParserError.invalidEOFState: return ClientError.connectionLost(what: call.name)
        case is HTTPParserError: return garbage(call, "it is not HTTP; is \(path) a broker's socket?")
        case is ChannelError: return ClientError.connectionLost(what: call.name)
        default: return garbage(call, "\(error)")
        }
    }

    /// What is at the path where it is no socket; connect(2) says "refused" for that, too.
    private var kindOfFile: String? {
        var facts = stat()
        guard case .unix(let path) = address, stat(path, &facts) == 0 else { return nil }
        return switch facts.st_mode & S_IFMT {
        case S_IFSOCK: nil
        case S_IFDIR: "a folder"
        default: "a file"
        }
    }

    private static func refused(_ call: OutgoingRequest, _ status: HTTPResponseStatus, _ body: [UInt8]) -> ClientError {
        guard let problem = try? JSONCoding.decoder().decode(Problem.self, from: Data(body)) else {
            return .notUnderstood(
                what: "the answer to \(call.name)",
                detail: "status \(status.code) without a problem in JSON"
            )
        }
        return .refused(problem)
    }

    private func garbage(_ call: OutgoingRequest, _ detail: String) -> ClientError {
        .notUnderstood(what: "the answer to \(call.name)", detail: detail)
    }
}

/// Ends a connection on which nothing arrived for too long; stands behind an `IdleStateHandler`.
///
/// A broker that is stopped (SIGSTOP) or hung keeps its sockets open, so only silence tells.
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
