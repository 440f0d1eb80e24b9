/// A frame of the WebSocket protocol (RFC 6455, section 5.2).
struct WebSocketFrame: Hashable {
    enum Opcode: UInt8 {
        case continuation = 0
        case text = 1
        case binary = 2
        case close = 8
        case ping = 9
        case pong = 10
    }

    var isFinal = true
    /// The three bits for extensions.
    var reserved: UInt8 = 0
    /// Nil for an opcode that RFC 6455 does not define.
    let opcode: Opcode?
    var isMasked = false
    let payload: [UInt8]

    /// Returns a whole message of up to 65,535 bytes, or a control frame, from a client with a new random mask (section 5.3).
    static func masked(_ opcode: Opcode, _ payload: some Collection<UInt8>) -> [UInt8] {
        let length = UInt16(payload.count)
        var frame: [UInt8] = [0x80 | opcode.rawValue]
        frame += length < 126 ? [0x80 | UInt8(length)] : [0x80 | 126, UInt8(length >> 8), UInt8(length & 0xFF)]
        let mask = (0..<4).map { _ in UInt8.random(in: 0...255) }
        frame += mask
        for (offset, byte) in payload.enumerated() { frame.append(byte ^ mask[offset % 4]) }
        return frame
    }
}

/// Splits the bytes of a server into WebSocket frames. Has no I/O.
struct WebSocketDecoder {
    /// The size limit of a frame in bytes.
    let limit: Int
    private var bytes: ArraySlice<UInt8> = []

    init(limit: Int) { self.limit = limit }

    mutating func append(_ more: some Sequence<UInt8>) { bytes += more }

    /// Returns the next frame; nil if more bytes are needed.
    ///
    /// - Throws: `ExchangeError.tooLarge`, `.invalid`.
    mutating func next() throws(ExchangeError) -> WebSocketFrame? {
        guard bytes.count >= 2 else { return nil }
        let (first, second) = (bytes[bytes.startIndex], bytes[bytes.startIndex + 1])
        var size = Int(second & 0x7F)
        // A length of two or eight bytes follows.
        let extra = size < 126 ? 0 : size == 126 ? 2 : 8
        let isMasked = second & 0x80 != 0
        let start = 2 + extra + (isMasked ? 4 : 0)
        guard bytes.count >= start else { return nil }
        if extra > 0 {
            let length = bytes.dropFirst(2).prefix(extra).reduce(UInt64(0)) { $0 << 8 | UInt64($1) }
            size = Int(clamping: length)
        }
        guard size <= limit else { throw .tooLarge(limit: limit) }
        // Section 5.5.
        let isControl = first & 0x08 != 0
        guard !isControl || size < 126 && first & 0x80 != 0 else { throw .invalid("it sent an invalid control frame") }
        guard bytes.count >= start + size else { return nil }
        defer { bytes = bytes.dropFirst(start + size) }
        return WebSocketFrame(
            isFinal: first & 0x80 != 0,
            reserved: first >> 4 & 7,
            opcode: WebSocketFrame.Opcode(rawValue: first & 0x0F),
            isMasked: isMasked,
            payload: Array(bytes.dropFirst(start).prefix(size))
        )
    }
}
