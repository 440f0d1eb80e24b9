/// One message as it travels: a header and what follows it, not looked at yet.
package struct UsbmuxFrame: Hashable, Sendable {
    package let header: UsbmuxHeader
    package let body: [UInt8]

    package init(header: UsbmuxHeader, body: [UInt8]) {
        self.header = header
        self.body = body
    }
}

/// Cuts the bytes from usbmuxd, or from one of its clients, into messages, however they are split.
///
/// A header is judged before a byte of its body is kept, so a false length costs nothing. After an error nothing more
/// comes out: the stream has lost its frame and the connection must be closed.
package struct UsbmuxFrameDecoder: Sendable {
    /// Whose bytes these are.
    package enum Sender: Sendable {
        case usbmuxd
        case client
    }

    /// The longest message of usbmuxd that is believed. A record in a device list takes about 700 bytes, so this is a list of more
    /// than a thousand phones, where usbmuxd itself ends at 128 USB addresses a bus; requests it refuses above 64 KiB.
    static let lengthLimit: UInt32 = 1 << 20
    /// The longest request (CMD_BUF_SIZE in usbmuxd's client.c); beyond it usbmuxd hangs up.
    package static let requestLimit: UInt32 = 1 << 16

    private let sender: Sender
    private var buffer: [UInt8] = []
    private var fault: UsbmuxError?

    package init(from sender: Sender = .usbmuxd) { self.sender = sender }

    /// How many more bytes complete what is being received: the header, or the message that it announced; at least 1.
    ///
    /// Whoever reads no more than this reads no byte beyond the message, and so none of a stream that begins behind it.
    package var missing: Int {
        guard fault == nil else { return 1 }
        guard buffer.count >= UsbmuxHeader.size else { return UsbmuxHeader.size - buffer.count }
        return max(1, Int(UsbmuxHeader(of: buffer).length) - buffer.count)
    }

    package mutating func append(_ bytes: some Collection<UInt8>) {
        if fault == nil { buffer += bytes }
    }

    /// The next whole message of usbmuxd; nil when bytes of it are missing.
    mutating func next() throws(UsbmuxError) -> UsbmuxMessage? {
        guard let frame = try nextFrame() else { return nil }
        let body: UsbmuxMessage.Body =
            frame.header.version == 1
            ? .propertyList(frame.body) : .result(UsbmuxResult(code: UsbmuxHeader.word(at: 0, of: frame.body)))
        return UsbmuxMessage(tag: frame.header.tag, body: body)
    }

    /// The next whole message, whatever it is; nil when bytes of it are missing.
    package mutating func nextFrame() throws(UsbmuxError) -> UsbmuxFrame? {
        if let fault { throw fault }
        guard buffer.count >= UsbmuxHeader.size else { return nil }
        let header = UsbmuxHeader(of: buffer)
        let problem = sender == .usbmuxd ? Self.problem(with: header) : Self.problem(withRequest: header)
        if let words = problem {
            buffer = []
            fault = .garbled(words)
            throw .garbled(words)
        }
        let length = Int(header.length)
        guard buffer.count >= length else { return nil }
        let frame = UsbmuxFrame(header: header, body: Array(buffer[UsbmuxHeader.size..<length]))
        buffer.removeFirst(length)
        return frame
    }

    /// Only what loses the frame: a request that is wrong in any other way has an answer.
    private static func problem(withRequest header: UsbmuxHeader) -> String? {
        (UInt32(UsbmuxHeader.size)...requestLimit).contains(header.length)
            ? nil : "a request of \(header.length) bytes, which has \(UsbmuxHeader.size) to \(requestLimit)"
    }

    private static func problem(with header: UsbmuxHeader) -> String? {
        switch (header.version, header.kind) {
        case (1, 8) where header.length < UInt32(UsbmuxHeader.size):
            "a message of \(header.length) bytes, shorter than its own header"
        case (1, 8) where header.length > lengthLimit:
            "a message of \(header.length) bytes, more than the \(lengthLimit) that are believed"
        case (1, 8): nil
        case (0, 1) where header.length != UsbmuxHeader.resultLength:
            "a binary result of \(header.length) bytes, which has \(UsbmuxHeader.resultLength)"
        case (0, 1): nil
        default: "a message of version \(header.version), kind \(header.kind)"
        }
    }
}

/// The sixteen bytes before every message.
package struct UsbmuxHeader: Hashable, Sendable {
    package static let size = 16
    /// A header and one word.
    static let resultLength: UInt32 = 20

    /// Of the whole message, these bytes included.
    package let length: UInt32
    package let version: UInt32
    /// 8 for a property list, 1 for a binary result, 2 to 6 for the rest of the binary dialect.
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

    /// The word at that place. The caller has made sure that it is there.
    package static func word(at offset: Int, of bytes: [UInt8]) -> UInt32 {
        (0..<4).reduce(0) { $0 | UInt32(bytes[offset + $1]) << UInt32($1 * 8) }
    }
}

extension UsbmuxHeader {
    /// Reads the first sixteen bytes, which the caller has made sure are there.
    init(of bytes: [UInt8]) {
        length = Self.word(at: 0, of: bytes)
        version = Self.word(at: 4, of: bytes)
        kind = Self.word(at: 8, of: bytes)
        tag = Self.word(at: 12, of: bytes)
    }
}
