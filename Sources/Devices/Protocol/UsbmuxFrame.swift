/// One message on the wire: a header and its unparsed body.
package struct UsbmuxFrame: Hashable, Sendable {
    package let header: UsbmuxHeader
    package let body: [UInt8]

    package init(header: UsbmuxHeader, body: [UInt8]) {
        self.header = header
        self.body = body
    }
}

/// Splits the byte stream of usbmuxd, or of one of its clients, into messages.
///
/// Validates a header before it buffers the body, so a false length uses no memory. After an error no further message
/// is returned: message boundaries are lost and the connection must be closed.
package struct UsbmuxFrameDecoder: Sendable {
    /// The longest message accepted from usbmuxd: 1 MiB.
    ///
    /// A record in a device list takes about 700 bytes, so this allows more than a thousand devices. usbmuxd itself
    /// supports 128 USB addresses per bus.
    static let lengthLimit: UInt32 = 1 << 20
    /// The longest request (CMD_BUF_SIZE in usbmuxd's client.c). usbmuxd closes the connection on a longer one.
    package static let requestLimit: UInt32 = 1 << 16

    private let isForRequests: Bool
    private var buffer: [UInt8] = []
    private var error: UsbmuxError?

    /// `forRequests` is true for the bytes of a client, and false for those of usbmuxd.
    package init(forRequests: Bool = false) { isForRequests = forRequests }

    /// The number of bytes that complete the current header or message; at least 1.
    ///
    /// A reader that reads no more than this does not consume bytes of a stream that follows the message.
    package var bytesNeeded: Int {
        guard error == nil else { return 1 }
        guard buffer.count >= UsbmuxHeader.size else { return UsbmuxHeader.size - buffer.count }
        return max(1, Int(UsbmuxHeader(of: buffer).length) - buffer.count)
    }

    package mutating func append(_ bytes: some Collection<UInt8>) {
        if error == nil { buffer += bytes }
    }

    /// Returns the next complete message of usbmuxd; nil if bytes are missing.
    mutating func next() throws(UsbmuxError) -> UsbmuxMessage? {
        guard let frame = try nextFrame() else { return nil }
        let body: UsbmuxMessage.Body =
            frame.header.version == 1
            ? .propertyList(frame.body) : .result(UsbmuxResult(code: UsbmuxHeader.word(at: 0, of: frame.body)))
        return UsbmuxMessage(tag: frame.header.tag, body: body)
    }

    /// Returns the next complete message of any kind; nil if bytes are missing.
    package mutating func nextFrame() throws(UsbmuxError) -> UsbmuxFrame? {
        if let error { throw error }
        guard buffer.count >= UsbmuxHeader.size else { return nil }
        let header = UsbmuxHeader(of: buffer)
        let problem = isForRequests ? Self.problem(withRequest: header) : Self.problem(with: header)
        if let problem {
            buffer = []
            error = .malformedMessage(problem)
            throw .malformedMessage(problem)
        }
        let length = Int(header.length)
        guard buffer.count >= length else { return nil }
        let frame = UsbmuxFrame(header: header, body: Array(buffer[UsbmuxHeader.size..<length]))
        buffer.removeFirst(length)
        return frame
    }

    /// Checks only the length, which message boundaries depend on. Other invalid requests get a reply.
    private static func problem(withRequest header: UsbmuxHeader) -> String? {
        (UInt32(UsbmuxHeader.size)...requestLimit).contains(header.length)
            ? nil : "a request of \(header.length) bytes; the length must be \(UsbmuxHeader.size) to \(requestLimit)"
    }

    private static func problem(with header: UsbmuxHeader) -> String? {
        switch (header.version, header.kind) {
        case (1, 8) where header.length < UInt32(UsbmuxHeader.size):
            "a message of \(header.length) bytes, shorter than its own header"
        case (1, 8) where header.length > lengthLimit:
            "a message of \(header.length) bytes, more than the limit of \(lengthLimit)"
        case (1, 8): nil
        case (0, 1) where header.length != UsbmuxHeader.resultLength:
            "a binary result of \(header.length) bytes; the length must be \(UsbmuxHeader.resultLength)"
        case (0, 1): nil
        default: "a message of version \(header.version), kind \(header.kind)"
        }
    }
}

/// The 16-byte header of every message.
package struct UsbmuxHeader: Hashable, Sendable {
    package static let size = 16
    /// The length of a header and one word.
    static let resultLength: UInt32 = 20

    /// The length of the whole message in bytes, including the header.
    package let length: UInt32
    package let version: UInt32
    /// 8 for a property list, 1 for a binary result, 2 to 6 for the other messages of the binary protocol.
    package let kind: UInt32
    package let tag: UInt32

    package init(length: UInt32, version: UInt32, kind: UInt32, tag: UInt32) {
        self.length = length
        self.version = version
        self.kind = kind
        self.tag = tag
    }

    package var encoded: [UInt8] { [length, version, kind, tag].flatMap(Self.bytes(of:)) }

    package static func bytes(of word: UInt32) -> [UInt8] {
        (0..<4).map { UInt8(truncatingIfNeeded: word >> ($0 * 8)) }
    }

    /// Reads the little-endian word at `offset`. The caller guarantees that the bytes exist.
    package static func word(at offset: Int, of bytes: [UInt8]) -> UInt32 {
        (0..<4).reduce(0) { $0 | UInt32(bytes[offset + $1]) << UInt32($1 * 8) }
    }
}

extension UsbmuxHeader {
    /// Reads the first 16 bytes. The caller guarantees that they exist.
    init(of bytes: [UInt8]) {
        length = Self.word(at: 0, of: bytes)
        version = Self.word(at: 4, of: bytes)
        kind = Self.word(at: 8, of: bytes)
        tag = Self.word(at: 12, of: bytes)
    }
}
