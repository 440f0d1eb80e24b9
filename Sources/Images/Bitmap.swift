import CImages

/// An image as pixels: blue, green, red, alpha, a byte each, row by row without gaps.
struct Bitmap {
    let width: Int
    let height: Int
    var pixels: [UInt8]

    var longEdge: Int { max(width, height) }
    var stride: Int { width * 4 }

    /// With that longest edge, or as it is where it is no longer; without transparency, on white.
    ///
    /// Colours are multiplied with their alpha first, so that what is invisible does not bleed into what is seen.
    consuming func fitted(to edge: Int, isOpaque: Bool) throws(ImageError) -> Bitmap {
        var raster = self
        if !isOpaque { raster.multiplyAlpha() }
        raster = try raster.scaled(to: edge)
        if !isOpaque { raster.putOnWhite() }
        return raster
    }

    private func scaled(to edge: Int) throws(ImageError) -> Bitmap {
        guard longEdge > edge else { return self }
        let size = Self.size(width: width, height: height, fitting: edge)
        var small = Bitmap(
            width: size.width,
            height: size.height,
            pixels: [UInt8](repeating: 0, count: size.width * size.height * 4)
        )
        // Each pixel is the mean of those that it stands for.
        let status = ARGBScale(
            pixels,
            CInt(stride),
            CInt(width),
            CInt(height),
            &small.pixels,
            CInt(small.stride),
            CInt(small.width),
            CInt(small.height),
            kFilterBox
        )
        guard status == 0 else { throw .damaged("libyuv cannot scale \(width) x \(height)") }
        return small
    }

    /// The same proportions with the longer side at `edge`; no side is less than 1.
    static func size(width: Int, height: Int, fitting edge: Int) -> (width: Int, height: Int) {
        let long = max(width, height)
        guard long > edge else { return (width, height) }
        func side(_ length: Int) -> Int { max(1, (length * edge + long / 2) / long) }
        return (side(width), side(height))
    }

    private mutating func multiplyAlpha() {
        let (stride, width, height) = (CInt(stride), CInt(width), CInt(height))
        _ = pixels.withUnsafeMutableBufferPointer { pixels in
            // It may write where it reads.
            ARGBAttenuate(pixels.baseAddress, stride, pixels.baseAddress, stride, width, height)
        }
    }

    /// What is behind shows through as far as alpha lets it.
    private mutating func putOnWhite() {
        pixels.withUnsafeMutableBufferPointer { pixels in
            for place in Swift.stride(from: 0, to: pixels.count, by: 4) where pixels[place + 3] < 255 {
                let rest = 255 - pixels[place + 3]
                for colour in place..<place + 3 {
                    // Rounding may put a colour one above its alpha.
                    let (sum, isOver) = pixels[colour].addingReportingOverflow(rest)
                    pixels[colour] = isOver ? 255 : sum
                }
                pixels[place + 3] = 255
            }
        }
    }
}
