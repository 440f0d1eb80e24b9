/// An image of a format that clients take and that is not opened here, GIF or WebP, as far as its header and its end tell.
package struct ImageHeader: Hashable, Sendable {
    package let mimeType: String
    package let width: Int
    package let height: Int

    /// Nil where it is something else, or not whole.
    package init?(of bytes: [UInt8]) {
        if bytes.starts(with: Array("GIF8".utf8)), bytes.count > 13, bytes[5] == UInt8(ascii: "a") {
            // GIF89a, section 27: the last byte is the trailer.
            guard bytes.last == 0x3B else { return nil }
            mimeType = "image/gif"
            (width, height) = (Self.number(bytes[6..<8]), Self.number(bytes[8..<10]))
        } else if bytes.starts(with: Array("RIFF".utf8)), bytes.count >= 30,
            bytes[8..<12].elementsEqual("WEBP".utf8), let size = Self.webpSize(bytes)
        {
            // RFC 9649, section 2.4: the file goes on for so many bytes behind this number.
            guard Self.number(bytes[4..<8]) <= bytes.count - 8 else { return nil }
            mimeType = "image/webp"
            (width, height) = size
        } else {
            return nil
        }
        guard width > 0, height > 0 else { return nil }
    }

    package var longEdge: Int { max(width, height) }

    /// RFC 9649: section 2.5 for lossy images, 3.4 for lossless ones, 2.7 for those with more in them.
    private static func webpSize(_ bytes: [UInt8]) -> (width: Int, height: Int)? {
        switch String(decoding: bytes[12..<16], as: UTF8.self) {
        case "VP8 ": (number(bytes[26..<28]) & 0x3FFF, number(bytes[28..<30]) & 0x3FFF)
        case "VP8L": ((number(bytes[21..<25]) & 0x3FFF) + 1, ((number(bytes[21..<25]) >> 14) & 0x3FFF) + 1)
        case "VP8X": (number(bytes[24..<27]) + 1, number(bytes[27..<30]) + 1)
        default: nil
        }
    }

    /// The least significant byte comes first.
    private static func number(_ bytes: ArraySlice<UInt8>) -> Int { bytes.reversed().reduce(0) { $0 << 8 | Int($1) } }
}
