import NIOCore
import NIOHTTP1

/// Connections through ssh.
extension HTTPConnection {
    /// Waits until a broker answers on a new connection, before the request is sent.
    ///
    /// ssh accepts a connection before the other machine has connected to the broker. Without this first request, a broker
    /// that does not run would be indistinguishable from one that received the request and did not answer.
    /// - Throws: `ClientError.noRemoteBroker` if the connection closes; other errors of the connection.
    func awaitBroker(
        _ received: inout NIOAsyncChannelInboundStream<HTTPClientResponsePart>.AsyncIterator,
        _ outbound: NIOAsyncChannelOutboundWriter<HTTPClientRequestPart>
    ) async throws {
        let head = HTTPRequestHead(version: .http1_1, method: .GET, uri: "/health", headers: ["Host": address.host])
        try? await outbound.write(contentsOf: [.head(head), .end(nil)])
        do {
            while let part = try await received.next() {
                if case .end = part { return }
            }
        } catch let error where error is IOError || error is HTTPParserError || error is ChannelError {
            // The connection closed.
        }
        try Task.checkCancellation()
        guard case .ssh(let destination) = address else { return }
        throw ClientError.noRemoteBroker(destination, path: await SSHForward.to(destination).remotePath)
    }

    /// Returns the reason why ssh ended, if that is the cause of an error; otherwise the error.
    func reasonOfSSH(_ error: any Error) async -> any Error {
        guard case .ssh(let destination) = address else { return error }
        switch error {
        case ClientError.connectionLost, ClientError.brokerNotRunning, ClientError.noRemoteBroker,
            ClientError.invalidResponse:
            return await SSHForward.to(destination).endReason() ?? error
        default: return error
        }
    }
}
