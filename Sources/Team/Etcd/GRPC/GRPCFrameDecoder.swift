import NIOCore

/// Splits the body of a gRPC response into messages.
///
/// A message has a prefix of 5 bytes: 1 byte for compression, which is not used, and the length (big-endian).
struct GRPCFrameDecoder {
    /// The maximum length of a message in bytes. A list of 25,000 endpoints is below it.
    static let messageLimit = 16 << 20
    private static let prefixLength = 5

    private var buffer = ByteBuffer()

    mutating func append(_ bytes: ByteBuffer) {
        if buffer.readableBytes == 0 {
            buffer = bytes
        } else {
            buffer.writeImmutableBuffer(bytes)
        }
    }

    /// True if there is the beginning of an incomplete message.
    var hasRest: Bool { buffer.readableBytes > 0 }

    /// Returns the next complete message; nil if more bytes are needed.
    ///
    /// - Throws: `EtcdError.invalidResponse` for a compressed message, `.tooLarge`.
    mutating func next() throws(EtcdError) -> ByteBuffer? {
        let start = buffer.readerIndex
        guard let flag: UInt8 = buffer.getInteger(at: start), let length: UInt32 = buffer.getInteger(at: start + 1)
        else { return nil }
        guard flag == 0 else { throw .invalidResponse(reason: "etcd sent a compressed message") }
        guard length <= Self.messageLimit else { throw .tooLarge(bytes: Int(length)) }
        guard let message = buffer.getSlice(at: start + Self.prefixLength, length: Int(length)) else { return nil }
        buffer.moveReaderIndex(forwardBy: Self.prefixLength + Int(length))
        // Without the message, the next append copies only the rest.
        buffer = buffer.slice()
        return message
    }

    /// Returns a message with its prefix.
    static func frame(_ message: [UInt8]) -> ByteBuffer {
        var buffer = ByteBuffer()
        buffer.reserveCapacity(prefixLength + message.count)
        buffer.writeInteger(UInt8(0))
        buffer.writeInteger(UInt32(message.count))
        buffer.writeBytes(message)
        return buffer
    }
}
