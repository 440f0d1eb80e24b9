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
