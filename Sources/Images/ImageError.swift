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
