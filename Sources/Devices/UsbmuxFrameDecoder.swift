/// Cuts the bytes from usbmuxd into messages, however they are split.
///
/// A header is judged before a byte of its body is kept, so a false length costs nothing. After an error nothing more
/// comes out: the stream has lost its frame and the connection must be closed.
struct UsbmuxFrameDecoder: Sendable {
    /// The longest message that is believed. A record in a device list takes about 700 bytes, so this is a list of more
    /// than a thousand phones, where usbmuxd itself ends at 128 USB addresses a bus; requests it refuses above 64 KiB.
    static let lengthLimit: UInt32 = 1 << 20

    private var buffer: [UInt8] = []
    private var fault: UsbmuxError?

    /// How many more bytes complete what is being received: the header, or the message that it announced; at least 1.
    ///
    /// Whoever reads no more than this reads no byte beyond the message, and so none of a stream that begins behind it.
    var missing: Int {
        guard fault == nil else { return 1 }
        guard buffer.count >= UsbmuxHeader.size else { return UsbmuxHeader.size - buffer.count }
        return max(1, Int(UsbmuxHeader(of: buffer).length) - buffer.count)
    }

    mutating func append(_ bytes: some Collection<UInt8>) {
        if fault == nil { buffer += bytes }
    }

    /// The next whole message; nil when bytes of it are missing.
    mutating func next() throws(UsbmuxError) -> UsbmuxMessage? {
        if let fault { throw fault }
        guard buffer.count >= UsbmuxHeader.size else { return nil }
        let header = UsbmuxHeader(of: buffer)
        if let words = Self.problem(with: header) {
            buffer = []
            fault = .garbled(words)
            throw .garbled(words)
        }
        let length = Int(header.length)
        guard buffer.count >= length else { return nil }
        let body: UsbmuxMessage.Body =
            header.version == 1
            ? .propertyList(Array(buffer[UsbmuxHeader.size..<length]))
            : .result(UsbmuxResult(code: UsbmuxHeader.word(at: UsbmuxHeader.size, of: buffer)))
        buffer.removeFirst(length)
        return UsbmuxMessage(tag: header.tag, body: body)
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
