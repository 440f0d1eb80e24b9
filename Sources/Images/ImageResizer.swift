import FoundationEssentials
import SystemIO

/// Brings images to a size that agents' clients take, one at a time, on a thread of its own: a screenshot takes a tenth of a
/// second of work.
package actor ImageResizer {
    /// What image and text may be together: more is made smaller by the clients themselves, or refused.
    package static let longEdge = 1_568

    private static let thread = ThreadExecutor(named: "patchbay-images")
    package nonisolated var unownedExecutor: UnownedSerialExecutor { Self.thread.asUnownedSerialExecutor() }

    private let limits: ImageLimits

    package init(limits: ImageLimits = ImageLimits()) { self.limits = limits }

    /// - Parameters:
    ///   - base64: The image as JSON carries it.
    ///   - edge: The longest edge that it may have, in pixels.
    /// - Returns: What it was and what it has become; both are the same where it fits as it is.
    /// - Throws: `ImageError`, also for an image that would fit and cannot be opened.
    package func reduce(base64: String, to edge: Int) throws(ImageError) -> (original: ImageFile, fitted: ImageFile) {
        guard base64.utf8.count / 4 * 3 <= limits.bytes + 3 else { throw .tooManyBytes(base64.utf8.count / 4 * 3) }
        guard let data = Data(base64Encoded: base64) else { throw .notBase64 }
        let original = try ImageFile(reading: Array(data), within: limits)
        return (original, try original.fitted(to: max(1, edge), within: limits))
    }
}

/// What an image may be, and what it is to become.
package struct ImageLimits: Hashable, Sendable {
    /// The most pixels of an image that is opened; each takes four bytes while it is. A display of 6,016 x 3,384 is below.
    package var pixels = 32 << 20
    /// The longest edge of an image that is opened.
    package var edge = 32_768
    /// The most bytes of an image that is opened: what an app may answer.
    package var bytes = 32 << 20
    /// The most bytes of what is made. As base64 that is below the 1,048,576 characters at which clients refuse a result.
    package var result = 700_000

    package init() {}
}

/// Why an image could not be made smaller.
package enum ImageError: Error, Hashable, Sendable {
    /// Neither PNG nor JPEG.
    case unknownFormat
    case notBase64
    /// It would take more memory than an image may.
    case tooManyPixels(width: Int, height: Int)
    case tooManyBytes(Int)
    /// It begins like an image and is none; what the library says.
    case damaged(String)
}

extension ImageError: CustomStringConvertible {
    package var description: String {
        switch self {
        case .unknownFormat: "the image is neither PNG nor JPEG, and was not made smaller"
        case .notBase64: "the image is not base64"
        case .tooManyPixels(let width, let height): "an image of \(width) x \(height) pixels is not opened here"
        case .tooManyBytes(let count): "an image of \(count) bytes is not opened here"
        case .damaged(let reason): "the image is damaged: \(reason)"
        }
    }
}
