import FoundationEssentials
package import Model
import SystemIO

/// The image of a result, as it was delivered.
package struct ActivityPicture: Sendable {
    private let base64: String
    /// The media type in the result.
    private let type: String
    /// The size in pixels, once a client asked for it.
    private var pixels: (width: Int, height: Int)?
    /// The last smaller copy that a client asked for.
    private var copy: (width: Int, file: File)?

    /// An image file.
    package struct File: Sendable {
        package let bytes: [UInt8]
        package let type: String
    }

    /// The size in memory.
    var size: Int { base64.utf8.count + (copy?.file.bytes.count ?? 0) }

    /// Returns nil for a result without an image.
    init?(_ result: JSONObject) {
        let image = result["content"]?.array?.first { $0["type"] == "image" }
        guard let base64 = image?["data"]?.string else { return nil }
        self.base64 = base64
        type = image?["mimeType"]?.string.map { SanitizedText($0, limit: 40).text } ?? "application/octet-stream"
    }

    var facts: ActivityEntry.Picture {
        ActivityEntry.Picture(
            width: pixels?.width,
            height: pixels?.height,
            bytes: base64.utf8.count / 4 * 3,
            type: type
        )
    }

    /// The bytes of the beginning of a file that contain its size.
    private static let headLimit = 64 << 10

    /// Reads the size in pixels; false if it was known.
    mutating func measure() -> Bool {
        guard pixels == nil else { return false }
        let head = String(decoding: base64.utf8.prefix(Self.headLimit), as: UTF8.self)
        let image = Self.image(in: head) ?? Self.image(in: base64)
        pixels = image.map { ($0.width, $0.height) } ?? (0, 0)
        return true
    }

    private static func image(in base64: String) -> ImageFile? {
        Base64Decoder.decode(base64).flatMap { try? ImageFile(reading: Array($0.data), within: ImageLimits()) }
    }

    /// The image as it was delivered; nil for damaged base64.
    fileprivate var original: File? {
        guard let data = Base64Decoder.decode(base64)?.data else { return nil }
        // The app chooses the type, and a reader may show an image only.
        guard let type = ImageType(of: data), type != .svg else { return nil }
        return File(bytes: Array(data), type: type.rawValue)
    }

    /// Returns a copy of at most a width in pixels, and whether it was made now.
    ///
    /// Widths are rounded up, so that a client cannot make the broker decode a picture once for each width.
    fileprivate mutating func scaled(to width: Int, by images: ImageResizer) async -> (File?, isNew: Bool) {
        let width = ImageResizer.width(atLeast: width)
        if let copy, copy.width == width { return (copy.file, false) }
        _ = measure()
        guard let pixels, pixels.width > width else { return (original, false) }
        let edge = max(width, width * pixels.height / pixels.width)
        guard let fitted = try? await images.resize(base64: base64, to: edge, as: .jpeg).fitted else {
            return (original, false)
        }
        let file = File(bytes: fitted.bytes, type: fitted.format.mimeType)
        copy = (width, file)
        return (file, true)
    }
}

/// Reads the activity with its pictures for people. One image at a time, so that agents' screenshots wait for at most one.
package struct ActivityReader: Sendable {
    package let log: ActivityLog
    private let images: ImageResizer
    private let turn = AsyncSemaphore(permits: 1)

    package init(_ log: ActivityLog, images: ImageResizer) { (self.log, self.images) = (log, images) }

    /// Returns the entries with the sizes of their pictures.
    package func described(_ records: [ActivityRecord]) -> [ActivityEntry] {
        records.map { record in
            var record = record
            if var picture = record.picture, picture.measure() {
                record.picture = picture
                log.keep(picture, of: record)
            }
            return record.described
        }
    }

    /// Returns the picture of an entry.
    ///
    /// - Parameters:
    ///   - record: The entry.
    ///   - width: The maximum width in pixels; nil for the picture as it was delivered.
    /// - Returns: Nil without a picture.
    /// - Throws: `CancellationError`.
    package func file(of record: ActivityRecord, width: Int?) async throws -> ActivityPicture.File? {
        guard var picture = record.picture else { return nil }
        guard let width else { return picture.original }
        let permit = try await turn.acquire()
        defer { permit.release() }
        let (file, isNew) = await picture.scaled(to: width, by: images)
        if isNew { log.keep(picture, of: record) }
        return file
    }
}
