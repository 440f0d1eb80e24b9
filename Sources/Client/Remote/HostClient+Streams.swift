package import Model
package import SystemIO

/// Streams to endpoints and phones of other hosts.
extension HostClient {
    /// Opens a stream through the broker of another host. Each stream is a connection of its own.
    ///
    /// - Parameters:
    ///   - target: The target, with the IDs of that broker.
    ///   - address: The other broker.
    ///   - headers: The headers of the request.
    /// - Returns: The stream.
    /// - Throws: `ClientError`, `CancellationError`, `SocketError`.
    package func openStream(
        to target: TunnelTarget,
        at address: MemberAddress,
        headers: [(name: String, value: String)]
    ) async throws -> Connection {
        try await first(of: address) { connection in
            let client = PatchbayClient(
                address: connection.address,
                connectTimeout: Self.connectTimeout,
                security: connection.security,
                headers: headers
            )
            return try await client.streams.open(to: target)
        }
    }
}
