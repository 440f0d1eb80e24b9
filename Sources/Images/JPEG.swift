import CImages

/// JPEG through TurboJPEG.
enum JPEG {
    /// What the header says.
    static func size(of bytes: [UInt8]) throws(ImageError) -> (width: Int, height: Int) {
        try reading(bytes) { _, width, height throws(ImageError) in (width, height) }
    }

    /// Opened at an eighth to the whole of its size: the smallest that has an edge of `edge` at least, so that a photograph
    /// takes no more memory than it needs.
    static func raster(of bytes: [UInt8], atLeast edge: Int) throws(ImageError) -> Bitmap {
        try reading(bytes) { handle, width, height throws(ImageError) in
            let eighths = (1...8).first { max(scaled(width, $0), scaled(height, $0)) >= edge } ?? 8
            var raster = Bitmap(width: scaled(width, eighths), height: scaled(height, eighths), pixels: [])
            raster.pixels = [UInt8](repeating: 0, count: raster.stride * raster.height)
            let status = tjDecompress2(
                handle,
                bytes,
                CUnsignedLong(bytes.count),
                &raster.pixels,
                CInt(raster.width),
                CInt(raster.stride),
                CInt(raster.height),
                CInt(TJPF_BGRA.rawValue),
                // A small file of very many scans would be at work for minutes (libjpeg-turbo, CVE-2017-15232's kin).
                CInt(TJFLAG_LIMITSCANS)
            )
            // What the library warns of is still a picture, but for one that was cut off: what is not there it paints grey.
            let isWarning = status != 0 && tjGetErrorCode(handle) == CInt(TJERR_WARNING.rawValue)
            guard status == 0 || isWarning, !(isWarning && isCut(message(of: handle))) else {
                throw .damaged(message(of: handle))
            }
            return raster
        }
    }

    /// An opaque raster as a file. The colours are kept at full resolution: text on a screen is often coloured.
    static func file(of raster: Bitmap, quality: Int) throws(ImageError) -> [UInt8] {
        guard let handle = tjInitCompress() else { throw .damaged(message(of: nil)) }
        defer { tjDestroy(handle) }
        let limit = tjBufSize(CInt(raster.width), CInt(raster.height), CInt(TJSAMP_444.rawValue))
        var status: CInt = 0
        let file = [UInt8](unsafeUninitializedCapacity: Int(limit)) { buffer, filled in
            var place = buffer.baseAddress
            var count = limit
            status = tjCompress2(
                handle,
                raster.pixels,
                CInt(raster.width),
                CInt(raster.stride),
                CInt(raster.height),
                CInt(TJPF_BGRX.rawValue),
                &place,
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

    /// TJSCALED: how long a side is at that many eighths. TurboJPEG has each from one to eight, and more.
    private static func scaled(_ length: Int, _ eighths: Int) -> Int { (length * eighths + 7) / 8 }

    /// JWRN_JPEG_EOF and JWRN_HIT_MARKER of libjpeg.
    private static func isCut(_ warning: String) -> Bool { warning.lowercased().contains("premature end") }

    private static func message(of handle: tjhandle?) -> String {
        tjGetErrorStr2(handle).map { String(cString: $0) } ?? "no memory"
    }
}
