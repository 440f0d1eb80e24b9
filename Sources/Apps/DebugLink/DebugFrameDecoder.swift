/// Splits the bytes of a connection into frames.
///
/// Detects the framing at the first frame. The two framings look alike if the low byte of an objc.io length is 0. Then
/// the sixth byte decides. It begins the JSON text of an objc.io frame, and JSON begins with a byte of at least 9. In
/// the other framing it is the high byte of a length, at most 4.
///
/// An error is final, because the begin of the next frame is unknown.
package struct DebugFrameDecoder: Sendable {
    /// The size limit of the content of a frame in bytes, 64 MiB. A larger frame ends the connection.
    package static let contentLimit = 64 * 1_048_576

    private let limit: Int
    /// The framing of the connection; nil before the first frame.
    package private(set) var framing: DebugFraming?
    private var unread: ArraySlice<UInt8> = []
    /// The header of the current frame, and the first byte of its content.
    private var header: [UInt8] = []
    private var content: [UInt8] = []
    /// The length of the current frame's content; nil while its header is incomplete.
    private(set) var length: Int?
    private var failure: DebugLinkError?

    /// Creates a decoder.
    ///
    /// - Parameter limit: The size limit of the content of a frame in bytes.
    package init(limit: Int = DebugFrameDecoder.contentLimit) { self.limit = limit }

    /// The number of bytes that belong to an incomplete frame.
    package var incompleteBytes: Int { header.count + content.count }

    /// The memory for the content of the current frame in bytes.
    var reservedBytes: Int { content.capacity }

    /// Adds received bytes. Does not copy them if `next()` has returned nil before.
    package mutating func append(_ bytes: [UInt8]) {
        if unread.isEmpty { unread = bytes[...] } else { unread += bytes }
    }

    /// Returns the content of the next frame; nil if more bytes are needed.
    package mutating func next() throws(DebugLinkError) -> [UInt8]? {
        if let failure { throw failure }
        do throws(DebugLinkError) {
            if length == nil { length = try readHeader() }
        } catch {
            failure = error
            (unread, header) = ([], [])
            throw error
        }
        guard let length, readContent(length) else {
            // Releases the buffer of the received bytes.
            unread = []
            return nil
        }
        let frame = content
        (self.length, content) = (nil, [])
        return frame
    }

    /// Reads the header and the first byte of the content.
    ///
    /// - Returns: The length of the content; nil if more bytes are needed.
    private mutating func readHeader() throws(DebugLinkError) -> Int? {
        while let byte = unread.popFirst() {
            header.append(byte)
            if header.count == 1, byte != DebugFraming.signature { throw .wrongSignature(byte) }
            guard header.count > DebugFraming.objcio.headerSize else { continue }
            let framing = framing ?? detectedFraming
            let length = try length(in: framing)
            guard header.count > framing.headerSize else { continue }
            guard Self.beginsJSON(byte) else { throw .notJSON(byte) }
            self.framing = framing
            (header, content) = ([], [byte])
            return length
        }
        return nil
    }

    private var detectedFraming: DebugFraming {
        header[1] == 0 && !Self.beginsJSON(header[5]) ? .jsonOverTCP : .objcio
    }

    private func length(in framing: DebugFraming) throws(DebugLinkError) -> Int {
        if framing == .jsonOverTCP, header[1] != 0 { throw .wrongSignature(header[1]) }
        let raw = header.withUnsafeBytes { bytes in
            UInt32(littleEndian: bytes.loadUnaligned(fromByteOffset: framing.headerSize - 4, as: UInt32.self))
        }
        let length = framing == .objcio ? Int(Int32(bitPattern: raw)) : Int(raw)
        guard (1...limit).contains(length) else { throw .invalidLength(length, limit: limit) }
        return length
    }

    /// Moves bytes to the content.
    ///
    /// - Returns: True if the content is complete.
    private mutating func readContent(_ length: Int) -> Bool {
        let part = unread.prefix(length - content.count)
        let needed = content.count + part.count
        // The capacity follows the received bytes instead of the announced length.
        if needed > content.capacity { content.reserveCapacity(min(length, max(needed, 2 * content.capacity))) }
        content.append(contentsOf: part)
        unread = unread.dropFirst(part.count)
        return content.count == length
    }

    /// Returns whether a JSON text may begin with a byte.
    private static func beginsJSON(_ byte: UInt8) -> Bool {
        switch byte {
        case UInt8(ascii: "{"), UInt8(ascii: "["), UInt8(ascii: "\""), UInt8(ascii: "-"), UInt8(ascii: "t"),
            UInt8(ascii: "f"), UInt8(ascii: "n"), UInt8(ascii: "0")...UInt8(ascii: "9"), 0x09, 0x0A, 0x0D, 0x20:
            true
        default: false
        }
    }
}
