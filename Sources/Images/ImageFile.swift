/// An image as bytes, of which the header has been read.
package struct ImageFile: Hashable, Sendable {
    package let format: ImageFormat
    package let width: Int
    package let height: Int
    package let bytes: [UInt8]

    package var longEdge: Int { max(width, height) }

    /// - Throws: `ImageError`, also where opening it would go over the limits; nothing has been opened then.
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

    /// Itself where it is small enough and can be opened; else with an edge of at most `edge` and no more bytes than a result may have, as
    /// JPEG or PNG, whichever is smaller. A JPEG's orientation (EXIF) and colour profile are left behind.
    func fitted(to edge: Int, within limits: ImageLimits) throws(ImageError) -> ImageFile {
        if longEdge <= edge, bytes.count <= limits.result {
            try open()
            return self
        }
        let (opened, isOpaque) =
            switch format {
            case .png: try PNG.raster(of: bytes)
            case .jpeg: (raster: try JPEG.raster(of: bytes, atLeast: edge), isOpaque: true)
            }
        var raster = try opened.fitted(to: edge, isOpaque: isOpaque)
        while true {
            if let file = try Self.smallest(of: raster, within: limits.result) { return file }
            // Noise, which no format makes small: it becomes smaller itself.
            guard raster.longEdge > 1 else { throw .tooManyBytes(bytes.count) }
            raster = try raster.fitted(to: max(1, raster.longEdge * 3 / 4), isOpaque: true)
        }
    }

    /// Shows that all of it can be read; of a JPEG no more than an eighth of its size is made for that.
    private func open() throws(ImageError) {
        switch format {
        case .png: _ = try PNG.raster(of: bytes)
        case .jpeg: _ = try JPEG.raster(of: bytes, atLeast: 1)
        }
    }

    /// JPEG at a quality of 75, less where that is too much, or PNG where that is smaller still.
    private static func smallest(of raster: Bitmap, within limit: Int) throws(ImageError) -> ImageFile? {
        let jpeg = try JPEG.file(of: raster, quality: 75)
        if let png = PNG.file(of: raster, limit: min(jpeg.count, limit)) {
            return ImageFile(format: .png, width: raster.width, height: raster.height, bytes: png)
        }
        if jpeg.count <= limit {
            return ImageFile(format: .jpeg, width: raster.width, height: raster.height, bytes: jpeg)
        }
        let coarse = try JPEG.file(of: raster, quality: 50)
        guard coarse.count <= limit else { return nil }
        return ImageFile(format: .jpeg, width: raster.width, height: raster.height, bytes: coarse)
    }
}

/// A file format that is read and written here.
package enum ImageFormat: String, Hashable, Sendable {
    case png
    case jpeg

    /// By the first bytes, whatever somebody says that it is.
    package init?(of bytes: some Collection<UInt8>) {
        if bytes.starts(with: [0x89, 0x50, 0x4E, 0x47, 0x0D, 0x0A, 0x1A, 0x0A]) {
            self = .png
        } else if bytes.starts(with: [0xFF, 0xD8, 0xFF]) {
            self = .jpeg
        } else {
            return nil
        }
    }

    package var mimeType: String { "image/\(rawValue)" }
}

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
