import CImages

/// Decodes and encodes JPEG with TurboJPEG.
enum JPEG {
    /// Returns the size in the header.
    static func size(of bytes: [UInt8]) throws(ImageError) -> (width: Int, height: Int) {
        try reading(bytes) { _, width, height throws(ImageError) in (width, height) }
    }

    /// Decodes the image at one to eight eighths of its size: the smallest scale with an edge of at least `edge`. A
    /// photograph then needs no more memory than necessary.
    static func bitmap(of bytes: [UInt8], atLeast edge: Int) throws(ImageError) -> Bitmap {
        try reading(bytes) { handle, width, height throws(ImageError) in
            let eighths = (1...8).first { max(scaled(width, $0), scaled(height, $0)) >= edge } ?? 8
            var bitmap = Bitmap(width: scaled(width, eighths), height: scaled(height, eighths), pixels: [])
            bitmap.pixels = [UInt8](repeating: 0, count: bitmap.stride * bitmap.height)
            let status = tjDecompress2(
                handle,
                bytes,
                CUnsignedLong(bytes.count),
                &bitmap.pixels,
                CInt(bitmap.width),
                CInt(bitmap.stride),
                CInt(bitmap.height),
                CInt(TJPF_BGRA.rawValue),
                // A small file with very many scans would take minutes (related to libjpeg-turbo's CVE-2017-15232).
                CInt(TJFLAG_LIMITSCANS)
            )
            // After a warning the image is usable, unless the file is truncated: the library fills the missing part
            // with grey.
            let isWarning = status != 0 && tjGetErrorCode(handle) == CInt(TJERR_WARNING.rawValue)
            guard status == 0 || isWarning, !(isWarning && isTruncated(message(of: handle))) else {
                throw .damaged(message(of: handle))
            }
            return bitmap
        }
    }

    /// Encodes an opaque bitmap. Colours keep the full resolution (4:4:4), because text on a screen is often coloured.
    static func file(of bitmap: Bitmap, quality: Int) throws(ImageError) -> [UInt8] {
        guard let handle = tjInitCompress() else { throw .damaged(message(of: nil)) }
        defer { tjDestroy(handle) }
        let limit = tjBufSize(CInt(bitmap.width), CInt(bitmap.height), CInt(TJSAMP_444.rawValue))
        var status: CInt = 0
        let file = [UInt8](unsafeUninitializedCapacity: Int(limit)) { buffer, filled in
            var destination = buffer.baseAddress
            var count = limit
            status = tjCompress2(
                handle,
                bitmap.pixels,
                CInt(bitmap.width),
                CInt(bitmap.stride),
                CInt(bitmap.height),
                CInt(TJPF_BGRX.rawValue),
                &destination,
                &count,
                CInt(TJSAMP_444.rawValue),
                CInt(quality),
                CInt(TJFLAG_NOREALLOC)
            )
            filled = status == 0 ? Int(count) : 0
        }
        guard status == 0 else { throw .damaged(message(of: handle)) }
        return file
    }

    private static func reading<Value>(
        _ bytes: [UInt8],
        _ body: (tjhandle, Int, Int) throws(ImageError) -> Value
    ) throws(ImageError) -> Value {
        guard let handle = tjInitDecompress() else { throw .damaged(message(of: nil)) }
        defer { tjDestroy(handle) }
        var (width, height, sampling, colours): (CInt, CInt, CInt, CInt) = (0, 0, 0, 0)
        let status = tjDecompressHeader3(
            handle,
            bytes,
            CUnsignedLong(bytes.count),
            &width,
            &height,
            &sampling,
            &colours
        )
        guard status == 0, width > 0, height > 0 else { throw .damaged(message(of: handle)) }
        return try body(handle, Int(width), Int(height))
    }

    /// TJSCALED: the length of a side at a scale in eighths. TurboJPEG supports all scales from one to eight eighths.
    private static func scaled(_ length: Int, _ eighths: Int) -> Int { (length * eighths + 7) / 8 }

    /// The warnings JWRN_JPEG_EOF and JWRN_HIT_MARKER of libjpeg.
    private static func isTruncated(_ warning: String) -> Bool { warning.lowercased().contains("premature end") }

    private static func message(of handle: tjhandle?) -> String {
        tjGetErrorStr2(handle).map { String(cString: $0) } ?? "no memory"
    }
}
