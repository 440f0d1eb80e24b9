@testable import Apps

/// Promises for images of apps: an image has the size of its header, and no image costs more than the limits.
enum ImagePromises {
    static func check(_ input: [UInt8]) throws(Violation) {
        var limits = ImageLimits()
        (limits.pixels, limits.edge, limits.result) = (1 << 14, 512, 20_000)
        guard let file = try? ImageFile(reading: input, within: limits) else { return }
        try promise("an image has a size", file.width > 0 && file.height > 0)
        try promise("a size is limited", file.width * file.height <= limits.pixels && file.longEdge <= limits.edge)
        for edge in [8, 1_000] {
            guard let fitted = try? file.fitted(to: edge, within: limits) else { continue }
            try promise("an image fits", fitted.longEdge <= max(edge, 1) && fitted.bytes.count <= limits.result)
            let again = try? ImageFile(reading: fitted.bytes, within: limits)
            try promise(
                "a fitted image is read with its size",
                again?.width == fitted.width && again?.height == fitted.height
            )
        }
    }
}
