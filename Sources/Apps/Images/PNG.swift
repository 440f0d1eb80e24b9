import CImages

/// Decodes and encodes PNG with libpng's simplified API. longjmp(3) stays inside that library.
enum PNG {
    /// Returns the size in the header.
    static func size(of bytes: [UInt8]) throws(ImageError) -> (width: Int, height: Int) {
        try reading(bytes) { image throws(ImageError) in (Int(image.width), Int(image.height)) }
    }

    static func bitmap(of bytes: [UInt8]) throws(ImageError) -> (bitmap: Bitmap, isOpaque: Bool) {
        try reading(bytes) { image throws(ImageError) in
            let isOpaque = image.format & png_uint_32(PNG_FORMAT_FLAG_ALPHA) == 0
            image.format = CImages_bgra
            let (width, height) = (Int(image.width), Int(image.height))
            var bitmap = Bitmap(
                width: width,
                height: height,
                pixels: [UInt8](repeating: 0, count: width * height * 4)
            )
            guard png_image_finish_read(&image, nil, &bitmap.pixels, png_int_32(bitmap.stride), nil) != 0 else {
                throw .damaged(message(of: image))
            }
            return (bitmap, isOpaque)
        }
    }

    /// Encodes an opaque bitmap. Returns nil if the file would have more than `limit` bytes.
    static func file(of bitmap: Bitmap, limit: Int) -> [UInt8]? {
        let colours = withoutAlpha(bitmap)
        var image = png_image()
        image.version = png_uint_32(PNG_IMAGE_VERSION)
        image.width = png_uint_32(bitmap.width)
        image.height = png_uint_32(bitmap.height)
        image.format = CImages_bgr
        defer { png_image_free(&image) }
        var file = [UInt8](repeating: 0, count: limit)
        var count = png_alloc_size_t(limit)
        // png.h: if the buffer is too small, the function returns 0 and sets the required size.
        let isWritten = png_image_write_to_memory(
            &image,
            &file,
            &count,
            0,
            colours,
            png_int_32(bitmap.width * 3),
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

    private static func withoutAlpha(_ bitmap: Bitmap) -> [UInt8] {
        let count = bitmap.width * bitmap.height
        return [UInt8](unsafeUninitializedCapacity: count * 3) { colours, filled in
            bitmap.pixels.withUnsafeBufferPointer { pixels in
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
