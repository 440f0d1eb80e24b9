import CImages

/// The pixels of an image: blue, green, red, alpha, one byte each, row by row without gaps.
struct Bitmap {
    let width: Int
    let height: Int
    var pixels: [UInt8]

    var longEdge: Int { max(width, height) }
    var stride: Int { width * 4 }

    /// Returns the image scaled down to a longest edge, without transparency, on white. A smaller image keeps its size.
    ///
    /// Colours are multiplied with alpha before scaling, so that invisible pixels do not bleed into visible ones.
    consuming func fitted(to edge: Int, isOpaque: Bool) throws(ImageError) -> Bitmap {
        var bitmap = self
        if !isOpaque { bitmap.multiplyAlpha() }
        bitmap = try bitmap.scaled(to: edge)
        if !isOpaque { bitmap.flattenOnWhite() }
        return bitmap
    }

    private func scaled(to edge: Int) throws(ImageError) -> Bitmap {
        guard longEdge > edge else { return self }
        let size = Self.size(width: width, height: height, fitting: edge)
        var small = Bitmap(
            width: size.width,
            height: size.height,
            pixels: [UInt8](repeating: 0, count: size.width * size.height * 4)
        )
        // Box filter: each pixel is the mean of the pixels that it replaces.
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

    /// Returns the size with the longer side at `edge`, in the same proportions. No side is shorter than 1.
    static func size(width: Int, height: Int, fitting edge: Int) -> (width: Int, height: Int) {
        let long = max(width, height)
        guard long > edge else { return (width, height) }
        func side(_ length: Int) -> Int { max(1, (length * edge + long / 2) / long) }
        return (side(width), side(height))
    }

    private mutating func multiplyAlpha() {
        let (stride, width, height) = (CInt(stride), CInt(width), CInt(height))
        _ = pixels.withUnsafeMutableBufferPointer { pixels in
            // libyuv allows the same buffer for input and output.
            ARGBAttenuate(pixels.baseAddress, stride, pixels.baseAddress, stride, width, height)
        }
    }

    /// Puts the image on a white background.
    private mutating func flattenOnWhite() {
        pixels.withUnsafeMutableBufferPointer { pixels in
            for offset in Swift.stride(from: 0, to: pixels.count, by: 4) where pixels[offset + 3] < 255 {
                let rest = 255 - pixels[offset + 3]
                for colour in offset..<offset + 3 {
                    // Rounding can make a colour exceed its alpha by 1.
                    let (sum, isOver) = pixels[colour].addingReportingOverflow(rest)
                    pixels[colour] = isOver ? 255 : sum
                }
                pixels[offset + 3] = 255
            }
        }
    }
}
