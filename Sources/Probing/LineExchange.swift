import NIOCore
import NIOPosix
import SystemIO

/// One message to a server that takes a message a line, and the line that it answers with.
struct LineExchange: Sendable {
    /// Without its end.
    let message: String

    /// Returns the first line that has a JSON object, from where that begins: iMCP sends its heart beats without an end of line.
    ///
    /// - Throws: What NIO throws, `CancellationError`, or `ProbeError`.
    func run(over carrier: consuming Connection) async throws -> [UInt8] {
        guard carrier.early.isEmpty else { throw ProbeError.speaksFirst }
        let (descriptor, _, _, lease) = carrier.release()
        // The lease goes when this returns, after the channel has closed the descriptor.
        defer { withExtendedLifetime(lease) {} }
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
                guard bytes.count <= ProbeHTTPRequest.limit else { throw ProbeError.tooMuch }
                guard bytes.contains(UInt8(ascii: "\n")) else { continue }
                for line in bytes.split(separator: UInt8(ascii: "\n")) {
                    if let start = line.firstIndex(of: UInt8(ascii: "{")) { return Array(line[start...]) }
                }
            }
            throw ProbeError.endedEarly
        }
    }
}
