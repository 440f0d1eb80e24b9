import FoundationEssentials
import Model
import SystemIO

/// Scales images down to a size that MCP clients accept. Works on one image at a time, on its own thread, because a
/// screenshot takes about 100 ms.
package actor ImageResizer {
    /// The longest edge in pixels that clients accept beside text. Clients scale down or reject larger images.
    package static let longEdge = 1_568
    /// The widths of pictures for people are multiples of this, so that few copies serve all of them.
    private static let widthStep = 120

    /// Returns the next multiple of 120 for a wanted width in pixels.
    static func width(atLeast width: Int) -> Int {
        (max(1, min(width, 4_096)) + widthStep - 1) / widthStep * widthStep
    }

    private static let thread = ThreadExecutor(named: "patchbay-images")
    package nonisolated var unownedExecutor: UnownedSerialExecutor { Self.thread.asUnownedSerialExecutor() }

    private let limits: ImageLimits

    package init(limits: ImageLimits = ImageLimits()) { self.limits = limits }

    /// Decodes an image and scales it down if necessary.
    ///
    /// - Parameters:
    ///   - base64: The image in base64, as `Base64Decoder` accepts it.
    ///   - edge: The maximum length of the longest edge, in pixels.
    ///   - format: The format of the result; nil for that of the original, or the smaller one of a scaled image.
    /// - Returns: The original and the result, which are equal if the image already fits, and has the format; and whether
    ///   the base64 is standard.
    /// - Throws: `ImageError`, also for an image that fits but cannot be decoded.
    package func resize(
        base64: String,
        to edge: Int,
        as format: ImageFormat? = nil
    ) throws(ImageError) -> (original: ImageFile, fitted: ImageFile, isStandard: Bool) {
        guard base64.utf8.count / 4 * 3 <= limits.bytes + 3 else { throw .tooManyBytes(base64.utf8.count / 4 * 3) }
        guard let (data, isStandard) = Base64Decoder.decode(base64) else { throw .notBase64 }
        let original = try ImageFile(reading: Array(data), within: limits)
        return (original, try original.fitted(to: max(1, edge), as: format, within: limits), isStandard)
    }

    /// Scales an image down if necessary.
    ///
    /// - Throws: `ImageError`.
    func fitted(_ file: ImageFile, to edge: Int, as format: ImageFormat?) throws(ImageError) -> ImageFile {
        try file.fitted(to: max(1, edge), as: format, within: limits)
    }
}

/// The limits of images before and after resizing.
package struct ImageLimits: Hashable, Sendable {
    /// The maximum number of pixels of a decoded image, at four bytes per pixel. A display of 6,016 x 3,384 pixels is
    /// below the limit.
    package var pixels = 32 << 20
    /// The maximum length of the longest edge of a decoded image, in pixels.
    package var edge = 32_768
    /// The maximum size of an encoded image in bytes: the maximum size of an app's response.
    package var bytes = 32 << 20
    /// The maximum size of the result in bytes. In base64, that is below the 1,048,576 characters at which clients
    /// reject a result.
    package var result = 700_000

    package init() {}
}

/// The reason why an image could not be resized.
package enum ImageError: Error, Hashable, Sendable {
    /// The image is neither PNG nor JPEG.
    case unknownFormat
    case notBase64
    /// The image would need more memory than allowed.
    case tooManyPixels(width: Int, height: Int)
    case tooManyBytes(Int)
    /// The image cannot be decoded. The text is the library's message.
    case damaged(String)
}

extension ImageError: CustomStringConvertible {
    package var description: String {
        switch self {
        case .unknownFormat: "the image is neither PNG nor JPEG, so it was not resized"
        case .notBase64: "the image is not base64"
        case .tooManyPixels(let width, let height): "an image of \(width) x \(height) pixels is too large to be resized"
        case .tooManyBytes(let count): "an image of \(count) bytes is too large to be resized"
        case .damaged(let reason): "the image is damaged: \(reason)"
        }
    }
}
