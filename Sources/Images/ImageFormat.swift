/// A file format that is read and written here.
package enum ImageFormat: String, Hashable, Sendable {
    case png
    case jpeg

    /// By the first bytes, whatever somebody says that it is.
    package init?(of bytes: some Collection<UInt8>) {
        if bytes.starts(with: [0x89, 0x50, 0x4E, 0x47, 0x0D, 0x0A, 0x1A, 0x0A]) {
            self = .png
        } else if bytes.starts(with: [0xFF, 0xD8, 0xFF]) {
            self = .jpeg
        } else {
            return nil
        }
    }

    package var mimeType: String { "image/\(rawValue)" }
}
