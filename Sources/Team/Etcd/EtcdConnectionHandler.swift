import Glibc
import NIOCore
import NIOHTTP2
import NIOSSL
import Transport

/// The number of TCP_USER_TIMEOUT in Linux' `tcp.h`.
let tcpUserTimeout = TCP_USER_TIMEOUT

/// Watches the frames and errors of a connection itself.
///
/// A server sends its settings after the TLS handshake on its side. With TLS 1.3 the client's side ends earlier, before
/// the server has verified the client's certificate.
final class EtcdConnectionHandler: ChannelInboundHandler {
    typealias InboundIn = HTTP2Frame

    private let connection: EtcdConnection
    private let ready: EventLoopPromise<EtcdConnection>
    private var onUnusable: (@Sendable () -> Void)?

    init(
        _ connection: EtcdConnection,
        ready: EventLoopPromise<EtcdConnection>,
        onUnusable: @escaping @Sendable () -> Void
    ) {
        self.connection = connection
        self.ready = ready
        self.onUnusable = onUnusable
    }

    func channelRead(context: ChannelHandlerContext, data: NIOAny) {
        switch unwrapInboundIn(data).payload {
        case .settings(.settings): ready.succeed(connection)
        // The server ends the connection after the calls that run.
        case .goAway: becomeUnusable()
        default: break
        }
    }

    func errorCaught(context: ChannelHandlerContext, error: any Error) {
        let certificate = try? context.pipeline.syncOperations.nioSSL_peerCertificate()
        ready.fail(Self.reason(error, connection.endpoint, certificate))
        context.close(promise: nil)
    }

    func channelInactive(context: ChannelHandlerContext) {
        ready.fail(EtcdError.notConnected(reason: "\(connection.endpoint) closed the connection"))
        becomeUnusable()
        context.fireChannelInactive()
    }

    private func becomeUnusable() {
        onUnusable?()
        onUnusable = nil
    }

    private static func reason(
        _ error: any Error,
        _ endpoint: EtcdEndpoint,
        _ certificate: NIOSSLCertificate?
    ) -> EtcdError {
        let now = time(nil)
        return switch ClientFailure(error) {
        case .keyRefused: .refused(reason: "\(endpoint) refused the certificate of this host")
        case .otherKey where certificate.map { $0.notValidBefore > now } == true:
            .notConnected(
                reason: "the certificate of \(endpoint) is not valid yet, because the clock of this host is at least "
                    + "\((certificate?.notValidBefore ?? now) - now) s behind"
            )
        case .otherKey where certificate.map { $0.notValidAfter < now } == true:
            .notConnected(reason: "the certificate of \(endpoint) has expired; check the clock")
        case .otherKey: .notConnected(reason: "the certificate of \(endpoint) is not of the configured authority")
        case .closed, .notTrusted: .notConnected(reason: "\(endpoint) closed the connection")
        case .failed(let reason): .notConnected(reason: "\(endpoint): \(reason)")
        case nil where error as? NIOSSLExtraError == .failedToValidateHostname:
            .notConnected(
                reason: "the certificate of etcd is not for \(endpoint.host); "
                    + "create one with patchbay team certificate NAME \(endpoint.host) --out FOLDER"
            )
        case nil: .notConnected(reason: "\(endpoint): \(error)")
        }
    }
}
