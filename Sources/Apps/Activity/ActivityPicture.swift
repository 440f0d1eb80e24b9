package import AccessControl
import FoundationEssentials
package import Model
import SystemIO

/// The image of a result, as it was delivered: in the result, or as the artifact that the result links.
package struct ActivityPicture: Sendable {
    private enum Source: Sendable {
        case base64(String)
        /// The artifact is dropped by its own rules (`ArtifactStore`).
        case artifact(sha: String, size: Int)
    }

    private let source: Source
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
    var size: Int {
        let own = if case .base64(let text) = source { text.utf8.count } else { 0 }
        return own + (copy?.file.bytes.count ?? 0)
    }

    /// Returns nil for a result without an image.
    init?(_ result: JSONObject) {
        let blocks = result["content"]?.array ?? []
        func type(_ block: JSON) -> String {
            block["mimeType"]?.string.map { SanitizedText($0, limit: 40).text } ?? "application/octet-stream"
        }
        if let image = blocks.first(where: { $0["type"] == "image" }) {
            guard let base64 = image["data"]?.string else { return nil }
            (source, self.type) = (.base64(base64), type(image))
            return
        }
        let link = blocks.first { $0["type"] == "resource_link" && type($0).hasPrefix("image/") }
        guard let link, let uri = link["uri"]?.string, uri.hasPrefix(ArtifactStore.scheme) else { return nil }
        let size = link["size"]?.number?.int ?? 0
        source = .artifact(sha: String(uri.dropFirst(ArtifactStore.scheme.count)), size: size)
        self.type = type(link)
    }

    var facts: ActivityEntry.Picture {
        let bytes =
            switch source {
            case .base64(let text): text.utf8.count / 4 * 3
            case .artifact(_, let size): size
            }
        return ActivityEntry.Picture(width: pixels?.width, height: pixels?.height, bytes: bytes, type: type)
    }

    /// The bytes of the beginning of a file that contain its size.
    private static let headLimit = 64 << 10

    /// Reads the size in pixels; false if it was known, or is in an artifact, whose file is read for its picture only.
    mutating func measure() -> Bool {
        guard pixels == nil, case .base64(let base64) = source else { return false }
        let head = String(decoding: base64.utf8.prefix(Self.headLimit), as: UTF8.self)
        let image = Self.image(in: head) ?? Self.image(in: base64)
        pixels = image.map { ($0.width, $0.height) } ?? (0, 0)
        return true
    }

    private static func image(in base64: String) -> ImageFile? {
        Base64Decoder.decode(base64).flatMap { try? ImageFile(reading: Array($0.data), within: ImageLimits()) }
    }

    /// Returns the image as it was delivered; nil for damaged base64, and for an artifact that is gone.
    fileprivate func original(_ artifacts: any ArtifactReader, for principal: Principal) async -> File? {
        let bytes: [UInt8]?
        switch source {
        case .base64(let text): bytes = Base64Decoder.decode(text).map { Array($0.data) }
        case .artifact(let sha, _): bytes = await artifacts.artifact(sha, for: principal)?.bytes
        }
        // The app chooses the type, and a reader may show an image only.
        guard let bytes, let type = ImageType(of: bytes), type != .svg else { return nil }
        return File(bytes: bytes, type: type.rawValue)
    }

    /// Returns a copy of at most a width in pixels, and whether it was made now.
    ///
    /// Widths are rounded up, so that a client cannot make the broker decode a picture once for each width.
    fileprivate mutating func scaled(
        to width: Int,
        by images: ImageResizer,
        from artifacts: any ArtifactReader,
        for principal: Principal
    ) async -> (File?, isNew: Bool) {
        let width = ImageResizer.width(atLeast: width)
        if let copy, copy.width == width { return (copy.file, false) }
        guard let original = await original(artifacts, for: principal) else { return (nil, false) }
        guard let image = try? ImageFile(reading: original.bytes, within: ImageLimits()) else {
            // A thumbnail is not worth the megabytes of an artifact that cannot be scaled.
            if case .artifact = source { return (nil, false) }
            return (original, false)
        }
        pixels = (image.width, image.height)
        guard image.width > width else { return (original, true) }
        let edge = max(width, width * image.height / image.width)
        guard let fitted = try? await images.fitted(image, to: edge, as: .jpeg) else { return (original, false) }
        let file = File(bytes: fitted.bytes, type: fitted.format.mimeType)
        copy = (width, file)
        return (file, true)
    }
}

/// Reads the activity with its pictures for people. One image at a time, so that agents' screenshots wait for at most one.
package struct ActivityReader: Sendable {
    package let log: ActivityLog
    private let images: ImageResizer
    private let artifacts: any ArtifactReader
    private let turn = AsyncSemaphore(permits: 1)

    package init(_ log: ActivityLog, images: ImageResizer, artifacts: any ArtifactReader) {
        (self.log, self.images, self.artifacts) = (log, images, artifacts)
    }

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
    ///   - principal: The reader.
    /// - Returns: Nil without a picture.
    /// - Throws: `CancellationError`.
    package func file(of record: ActivityRecord, width: Int?, for principal: Principal) async throws
        -> ActivityPicture.File?
    {
        guard var picture = record.picture else { return nil }
        guard let width else { return await picture.original(artifacts, for: principal) }
        let permit = try await turn.acquire()
        defer { permit.release() }
        let (file, isNew) = await picture.scaled(to: width, by: images, from: artifacts, for: principal)
        if isNew { log.keep(picture, of: record) }
        return file
    }
}
