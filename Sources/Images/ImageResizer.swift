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
