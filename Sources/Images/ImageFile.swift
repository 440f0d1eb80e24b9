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
