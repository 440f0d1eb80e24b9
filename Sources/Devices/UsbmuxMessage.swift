/// One message of usbmuxd's protocol: a header of four little-endian words and what follows it.
struct UsbmuxMessage: Hashable, Sendable {
    enum Body: Hashable, Sendable {
        /// Version 1: an XML property list, not looked at yet.
        case propertyList([UInt8])
        /// Version 0: how usbmuxd refuses a version that it does not speak, whatever the version was.
        case result(UsbmuxResult)
    }

    /// Of a reply, that of its request; 0 for what usbmuxd says unasked.
    let tag: UInt32
    let body: Body

    init(tag: UInt32, body: Body) {
        self.tag = tag
        self.body = body
    }

    var encoded: [UInt8] {
        switch body {
        case .propertyList(let bytes):
            let length = UInt32(UsbmuxHeader.size + bytes.count)
            return UsbmuxHeader(length: length, version: 1, kind: 8, tag: tag).encoded + bytes
        case .result(let result):
            let header = UsbmuxHeader(length: UsbmuxHeader.resultLength, version: 0, kind: 1, tag: tag)
            return header.encoded + UsbmuxHeader.bytes(of: result.code)
        }
    }
}

/// The sixteen bytes before every message.
struct UsbmuxHeader: Hashable, Sendable {
    static let size = 16
    /// A header and one word.
    static let resultLength: UInt32 = 20

    /// Of the whole message, these bytes included.
    let length: UInt32
    let version: UInt32
    /// 8 for a property list, 1 for a binary result.
    let kind: UInt32
    let tag: UInt32

    var encoded: [UInt8] { [length, version, kind, tag].flatMap(Self.bytes(of:)) }

    static func bytes(of word: UInt32) -> [UInt8] { (0..<4).map { UInt8(truncatingIfNeeded: word >> ($0 * 8)) } }

    /// The word at that place. The caller has made sure that it is there.
    static func word(at offset: Int, of bytes: [UInt8]) -> UInt32 {
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
