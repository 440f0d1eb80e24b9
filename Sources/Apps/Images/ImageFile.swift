import Model

/// An encoded image with a parsed header.
package struct ImageFile: Hashable, Sendable {
    package let format: ImageFormat
    package let width: Int
    package let height: Int
    package let bytes: [UInt8]

    package var longEdge: Int { max(width, height) }

    /// Parses the header without decoding the image.
    ///
    /// - Throws: `ImageError`, also if decoding would exceed the limits.
    init(reading bytes: [UInt8], within limits: ImageLimits) throws(ImageError) {
        guard let format = ImageFormat(of: bytes) else { throw .unknownFormat }
        guard bytes.count <= limits.bytes else { throw .tooManyBytes(bytes.count) }
        let (width, height) =
            switch format {
            case .png: try PNG.size(of: bytes)
            case .jpeg: try JPEG.size(of: bytes)
            }
        guard max(width, height) <= limits.edge, width * height <= limits.pixels else {
            throw .tooManyPixels(width: width, height: height)
        }
        self.init(format: format, width: width, height: height, bytes: bytes)
    }

    private init(format: ImageFormat, width: Int, height: Int, bytes: [UInt8]) {
        (self.format, self.width, self.height, self.bytes) = (format, width, height, bytes)
    }

    /// Returns the image with a longest edge of at most `edge`, and at most as many bytes as a result may have.
    ///
    /// A small image is only validated and returned unchanged. Otherwise the result has the wanted format, or is the
    /// smaller of JPEG and PNG. A JPEG loses its orientation (EXIF) and its colour profile.
    func fitted(to edge: Int, as wanted: ImageFormat? = nil, within limits: ImageLimits) throws(ImageError) -> ImageFile
    {
        if longEdge <= edge, bytes.count <= limits.result, wanted == nil || wanted == format {
            try open()
            return self
        }
        let (opened, isOpaque) =
            switch format {
            case .png: try PNG.bitmap(of: bytes)
            case .jpeg: (bitmap: try JPEG.bitmap(of: bytes, atLeast: edge), isOpaque: true)
            }
        var bitmap = try opened.fitted(to: edge, isOpaque: isOpaque)
        while true {
            if let file = try Self.smallest(of: bitmap, as: wanted, within: limits.result) { return file }
            // No format compresses noise, so the image is scaled down further.
            guard bitmap.longEdge > 1 else { throw .tooManyBytes(bytes.count) }
            bitmap = try bitmap.fitted(to: max(1, bitmap.longEdge * 3 / 4), isOpaque: true)
        }
    }

    /// Verifies that the image can be decoded. A JPEG is decoded at one eighth of its size.
    private func open() throws(ImageError) {
        switch format {
        case .png: _ = try PNG.bitmap(of: bytes)
        case .jpeg: _ = try JPEG.bitmap(of: bytes, atLeast: 1)
        }
    }

    /// Encodes in the wanted format; without one, as PNG if that is smaller than JPEG at quality 75. A JPEG above the
    /// limit is encoded again at quality 50.
    private static func smallest(
        of bitmap: Bitmap,
        as wanted: ImageFormat?,
        within limit: Int
    ) throws(ImageError) -> ImageFile? {
        func file(_ format: ImageFormat, _ bytes: [UInt8]) -> ImageFile {
            ImageFile(format: format, width: bitmap.width, height: bitmap.height, bytes: bytes)
        }
        if wanted == .png { return PNG.file(of: bitmap, limit: limit).map { file(.png, $0) } }
        let jpeg = try JPEG.file(of: bitmap, quality: 75)
        if wanted == nil, let png = PNG.file(of: bitmap, limit: min(jpeg.count, limit)) { return file(.png, png) }
        if jpeg.count <= limit { return file(.jpeg, jpeg) }
        let coarse = try JPEG.file(of: bitmap, quality: 50)
        return coarse.count <= limit ? file(.jpeg, coarse) : nil
    }
}

/// An image format that can be decoded and encoded here.
package enum ImageFormat: String, Hashable, Sendable {
    case png
    case jpeg

    /// Detects the format by the first bytes. A declared media type is ignored.
    package init?(of bytes: some RandomAccessCollection<UInt8>) {
        switch ImageType(of: bytes) {
        case .png: self = .png
        case .jpeg: self = .jpeg
        case .gif, .webp, .heic, .avif, .svg, nil: return nil
        }
    }

    package var mimeType: String { "image/\(rawValue)" }
}

/// An image that clients accept but that is not decoded here: GIF or WebP. Only its header and its end are checked.
package struct ImageHeader: Hashable, Sendable {
    package let mimeType: String
    package let width: Int
    package let height: Int

    /// Returns nil for another format and for a truncated file.
    package init?(of bytes: [UInt8]) {
        if bytes.starts(with: Array("GIF8".utf8)), bytes.count > 13, bytes[5] == UInt8(ascii: "a") {
            // GIF89a, section 27: the last byte is the trailer.
            guard bytes.last == 0x3B else { return nil }
            mimeType = "image/gif"
            (width, height) = (Self.number(bytes[6..<8]), Self.number(bytes[8..<10]))
        } else if bytes.starts(with: Array("RIFF".utf8)), bytes.count >= 30,
            bytes[8..<12].elementsEqual("WEBP".utf8), let size = Self.webpSize(bytes)
        {
            // RFC 9649, section 2.4: this number is the count of the bytes that follow.
            guard Self.number(bytes[4..<8]) <= bytes.count - 8 else { return nil }
            mimeType = "image/webp"
            (width, height) = size
        } else {
            return nil
        }
        guard width > 0, height > 0 else { return nil }
    }

    package var longEdge: Int { max(width, height) }

    /// Returns the size by RFC 9649: section 2.5 for lossy images, 3.4 for lossless images, 2.7 for the extended
    /// format.
    private static func webpSize(_ bytes: [UInt8]) -> (width: Int, height: Int)? {
        switch String(decoding: bytes[12..<16], as: UTF8.self) {
        case "VP8 ": (number(bytes[26..<28]) & 0x3FFF, number(bytes[28..<30]) & 0x3FFF)
        case "VP8L": ((number(bytes[21..<25]) & 0x3FFF) + 1, ((number(bytes[21..<25]) >> 14) & 0x3FFF) + 1)
        case "VP8X": (number(bytes[24..<27]) + 1, number(bytes[27..<30]) + 1)
        default: nil
        }
    }

    /// Reads a little-endian number.
    private static func number(_ bytes: ArraySlice<UInt8>) -> Int { bytes.reversed().reduce(0) { $0 << 8 | Int($1) } }
}
