import NIOCore
import NIOPosix
import SystemIO

/// One message and its response for a server with one message per line.
struct LineExchange: Sendable {
    /// The message without its line end.
    let message: String

    /// Returns the first line that contains a JSON object, starting at the object. iMCP sends heartbeats without a line
    /// end before it.
    ///
    /// - Throws: NIO's errors; `CancellationError`; `ProbeError`.
    func run(over connection: consuming Connection) async throws -> [UInt8] {
        let (descriptor, _, permit) = connection.release()
        // Keep the permit until the channel has closed the descriptor.
        defer { withExtendedLifetime(permit) {} }
        let channel = try await ClientBootstrap(group: .singletonMultiThreadedEventLoopGroup)
            .withConnectedSocket(descriptor) { channel in
                channel.eventLoop.makeCompletedFuture {
                    try NIOAsyncChannel<ByteBuffer, ByteBuffer>(wrappingChannelSynchronously: channel)
                }
            }
        return try await channel.executeThenClose { inbound, outbound in
            try await outbound.write(ByteBuffer(string: "\(message)\n"))
            var bytes: [UInt8] = []
            for try await buffer in inbound {
                bytes += buffer.readableBytesView
                guard bytes.count <= ProbeHTTPRequest.recognitionLimit else { throw ProbeError.responseTooLarge }
                guard bytes.contains(UInt8(ascii: "\n")) else { continue }
                for line in bytes.split(separator: UInt8(ascii: "\n")) {
                    if let start = line.firstIndex(of: UInt8(ascii: "{")) { return Array(line[start...]) }
                }
            }
            throw ProbeError.unexpectedEOF
        }
    }
}
