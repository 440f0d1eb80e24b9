import CImages

/// PNG through libpng's simplified API, whose longjmp(3) stays inside the library.
enum PNG {
    /// What the header says.
    static func size(of bytes: [UInt8]) throws(ImageError) -> (width: Int, height: Int) {
        try reading(bytes) { image throws(ImageError) in (Int(image.width), Int(image.height)) }
    }

    static func raster(of bytes: [UInt8]) throws(ImageError) -> (raster: Bitmap, isOpaque: Bool) {
        try reading(bytes) { image throws(ImageError) in
            let isOpaque = image.format & png_uint_32(PNG_FORMAT_FLAG_ALPHA) == 0
            image.format = CImages_bgra
            let (width, height) = (Int(image.width), Int(image.height))
            var raster = Bitmap(
                width: width,
                height: height,
                pixels: [UInt8](repeating: 0, count: width * height * 4)
            )
            guard png_image_finish_read(&image, nil, &raster.pixels, png_int_32(raster.stride), nil) != 0 else {
                throw .damaged(message(of: image))
            }
            return (raster, isOpaque)
        }
    }

    /// An opaque raster as a file; nil where that would have more bytes than `limit`.
    static func file(of raster: Bitmap, limit: Int) -> [UInt8]? {
        let colours = withoutAlpha(raster)
        var image = png_image()
        image.version = png_uint_32(PNG_IMAGE_VERSION)
        image.width = png_uint_32(raster.width)
        image.height = png_uint_32(raster.height)
        image.format = CImages_bgr
        defer { png_image_free(&image) }
        var file = [UInt8](repeating: 0, count: limit)
        var count = png_alloc_size_t(limit)
        // png.h: with a buffer that is too small it answers 0, and says how large it should be.
        let isWritten = png_image_write_to_memory(
            &image,
            &file,
            &count,
            0,
            colours,
            png_int_32(raster.width * 3),
            nil
        )
        guard isWritten != 0, count <= limit else { return nil }
        return Array(file.prefix(Int(count)))
    }

    private static func reading<Value>(
        _ bytes: [UInt8],
        _ body: (inout png_image) throws(ImageError) -> Value
    ) throws(ImageError) -> Value {
        try bytes.withUnsafeBufferPointer { buffer throws(ImageError) in
            var image = png_image()
            image.version = png_uint_32(PNG_IMAGE_VERSION)
            defer { png_image_free(&image) }
            guard png_image_begin_read_from_memory(&image, buffer.baseAddress, buffer.count) != 0 else {
                throw .damaged(message(of: image))
            }
            return try body(&image)
        }
    }

    private static func withoutAlpha(_ raster: Bitmap) -> [UInt8] {
        let count = raster.width * raster.height
        return [UInt8](unsafeUninitializedCapacity: count * 3) { colours, filled in
            raster.pixels.withUnsafeBufferPointer { pixels in
                for index in 0..<count {
                    colours[index * 3] = pixels[index * 4]
                    colours[index * 3 + 1] = pixels[index * 4 + 1]
                    colours[index * 3 + 2] = pixels[index * 4 + 2]
                }
            }
            filled = count * 3
        }
    }

    private static func message(of image: png_image) -> String {
        withUnsafeBytes(of: image.message) { String(decoding: $0.prefix { $0 != 0 }, as: UTF8.self) }
    }
}
