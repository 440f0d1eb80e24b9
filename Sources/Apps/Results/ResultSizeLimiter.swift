package import AccessControl
import FoundationEssentials
package import Model

/// Reduces tool results to sizes that MCP clients accept.
///
/// Clients reject results over 1,048,576 characters, and images over 5 MB or 2,000 pixels. Images are therefore scaled
/// down, with a note. Other large content is stored as an artifact and replaced by a link. Small results are unchanged.
/// Invalid images become links too: model APIs reject them, and with them the rest of the conversation. Base64 in another
/// form than the standard one becomes standard, because clients check it.
package struct ResultSizeLimiter: Sendable {
    /// The maximum size in a result of one text, of the structured content, and of all images together: 1 MiB.
    package static let limit = 1 << 20
    /// The maximum size of a result as JSON text: 1 MiB less 16 KiB for the rest of the message. The MCP Python SDK 2.3
    /// refuses a larger server-sent event (`DEFAULT_MAX_SSE_EVENT_SIZE` of `streamable_http.py`).
    static let messageLimit = limit - (16 << 10)
    /// The number of leading characters of a linked text that remain in the result.
    private static let previewLength = 2_000
    /// The maximum edge of an image that is not decoded here. Model APIs reject longer ones.
    private static let maxUndecodedEdge = 8_000

    private let images: ImageResizer
    let artifacts: ArtifactStore

    package init(images: ImageResizer, artifacts: ArtifactStore) {
        self.images = images
        self.artifacts = artifacts
    }

    /// Limits the size of a result.
    ///
    /// - Parameters:
    ///   - result: A `CallToolResult` from an app.
    ///   - maxPixels: The maximum edge of an image; 0 to link the originals.
    ///   - format: The format of the images; nil for any.
    ///   - principal: The principal that may read the artifacts.
    ///   - onLooseBase64: Called if base64 was not standard.
    /// - Returns: The result with scaled images and links.
    package func limitSize(
        of result: JSONObject,
        maxPixels: Int,
        as format: ImageFormat? = nil,
        for principal: Principal,
        onLooseBase64: () -> Void = {}
    ) async -> JSONObject {
        let blocks = result["content"]?.array ?? []
        // Escapes may double the size of a text.
        guard blocks.contains(where: Self.hasBase64) || JSON.object(result).approximateSize > Self.messageLimit / 2
        else {
            return result
        }
        var budget = Budget(maxPixels: maxPixels, format: format, principal: principal)
        var blocksWithFittedImages: [JSON] = []
        for block in blocks {
            blocksWithFittedImages +=
                block["type"] == "image" ? await fitImage(block, &budget) : [Self.standardized(block, &budget)]
        }
        if budget.hasLooseBase64 { onLooseBase64() }
        var content: [JSON] = []
        for block in blocksWithFittedImages {
            content += await limitBlock(budget.replaceBase64(inBlock: block), for: principal)
        }

        var limited = result
        if let structured = result["structuredContent"] {
            let structured = budget.replaceBase64(in: structured)
            limited["structuredContent"] = structured
            if structured.approximateSize > Self.limit,
                let link = await link(structured.bytes, mimeType: "application/json", for: principal)
            {
                // Clients that validate it against a schema report it missing, but none would accept this size either.
                limited["structuredContent"] = nil
                content.append(link.block(because: "the structured content, \(link.size) bytes"))
            }
        }
        if result["content"] != nil { limited["content"] = .array(content) }
        return await fitMessage(limited, for: principal)
    }

    /// Links the largest blocks without an image until the result fits a message, and then the structured content.
    ///
    /// The structured content usually repeats a text. It is the last one, because clients compare it with a schema.
    private func fitMessage(_ result: JSONObject, for principal: Principal) async -> JSONObject {
        var result = result
        var content = result["content"]?.array ?? []
        while JSON.object(result).approximateSize > Self.messageLimit / 2,
            JSON.object(result).bytes.count > Self.messageLimit
        {
            let texts = content.indices.filter { content[$0]["type"] != "image" }
            if let largest = texts.max(by: { content[$0].approximateSize < content[$1].approximateSize }),
                content[largest].approximateSize > Self.previewLength * 4
            {
                content.replaceSubrange(largest...largest, with: await linked(content[largest], for: principal))
            } else if let structured = result["structuredContent"],
                let link = await link(structured.bytes, mimeType: "application/json", for: principal)
            {
                result["structuredContent"] = nil
                content.append(link.block(because: "the structured content, \(link.size) bytes"))
            } else {
                break
            }
            if result["content"] != nil { result["content"] = .array(content) }
        }
        return result
    }

    /// Returns whether a result has images, which are resized one after another.
    static func hasImages(_ result: JSONObject) -> Bool {
        result["content"]?.array?.contains { $0["type"] == "image" } ?? false
    }

    private static func hasBase64(_ block: JSON) -> Bool {
        block["type"] == "image" || block["type"] == "audio" || block["resource"]?["blob"] != nil
    }

    /// Returns an audio block or an embedded resource with standard base64, and every other block unchanged.
    private static func standardized(_ block: JSON, _ budget: inout Budget) -> JSON {
        guard hasBase64(block), let object = block.object else { return block }
        let resource = object["resource"]?.object
        guard let text = resource.map({ $0["blob"] }) ?? object["data"], let base64 = text.string,
            let (data, isStandard) = Base64Decoder.decode(base64), !isStandard
        else { return block }
        budget.hasLooseBase64 = true
        let standard = JSON.string(data.base64EncodedString())
        guard let resource else { return .object(object.with("data", standard)) }
        return .object(object.with("resource", .object(resource.with("blob", standard))))
    }

    // MARK: Images

    private struct Budget {
        let maxPixels: Int
        let format: ImageFormat?
        let principal: Principal
        /// The remaining size for images.
        var remainingImageBytes = ResultSizeLimiter.messageLimit
        var replacers: [Base64Replacer] = []
        var hasLooseBase64 = false

        func replaceBase64(in json: JSON) -> JSON { replacers.reduce(json) { $1.applied(to: $0) } }

        func replaceBase64(inBlock block: JSON) -> JSON {
            guard !replacers.isEmpty, block["type"] == "text", var object = block.object,
                let text = object["text"]?.string
            else { return block }
            object["text"] = .string(replacers.reduce(text) { $1.applied(toText: $0) })
            return .object(object)
        }
    }

    private func fitImage(_ block: JSON, _ budget: inout Budget) async -> [JSON] {
        guard let object = block.object, let base64 = object["data"]?.string else { return [block] }
        if budget.maxPixels == 0, let (data, isStandard) = Base64Decoder.decode(base64) {
            if !isStandard { budget.hasLooseBase64 = true }
            let mimeType = ImageType(of: data)?.rawValue ?? Self.mimeType(object["mimeType"])
            return await linked(base64, Array(data), mimeType: mimeType, because: nil, &budget)
        }
        do throws(ImageError) {
            let (original, fitted, isStandard) = try await images.resize(
                base64: base64,
                to: budget.maxPixels,
                as: budget.format
            )
            if !isStandard { budget.hasLooseBase64 = true }
            let data = fitted == original && isStandard ? base64 : Data(fitted.bytes).base64EncodedString()
            guard data.utf8.count <= budget.remainingImageBytes else {
                let reason = "the images of one result are too large together"
                return await linked(
                    base64,
                    original.bytes,
                    mimeType: original.format.mimeType,
                    because: reason,
                    &budget
                )
            }
            budget.remainingImageBytes -= data.utf8.count
            guard fitted != original else { return [.object(object.withImage(data, fitted.format.mimeType))] }
            if let link = await link(original.bytes, mimeType: original.format.mimeType, for: budget.principal) {
                budget.replacers.append(Base64Replacer(text: base64, uri: link.uri))
            }
            return [.object(object.withImage(data, fitted.format.mimeType))]
                + Self.scaleNote(from: original, to: fitted)
        } catch {
            let decoded = Base64Decoder.decode(base64)
            if decoded?.isStandard == false { budget.hasLooseBase64 = true }
            let bytes = decoded.map { Array($0.data) } ?? Array(base64.utf8)
            if let image = ImageHeader(of: bytes), image.longEdge <= Self.maxUndecodedEdge,
                base64.utf8.count <= budget.remainingImageBytes
            {
                budget.remainingImageBytes -= base64.utf8.count
                let data = decoded?.isStandard == true ? base64 : Data(bytes).base64EncodedString()
                return [.object(object.withImage(data, image.mimeType))]
            }
            let mimeType = Self.mimeType(of: bytes, called: object["mimeType"], after: error)
            return await linked(base64, bytes, mimeType: mimeType, because: error.description, &budget)
        }
    }

    /// Tells the client the scale, so that it can convert coordinates for taps.
    private static func scaleNote(from original: ImageFile, to fitted: ImageFile) -> [JSON] {
        guard (original.width, original.height) != (fitted.width, fitted.height) else { return [] }
        let sizes = "\(original.width)x\(original.height) to \(fitted.width)x\(fitted.height)"
        return [["type": "text", "text": .string("[scaled from \(sizes) pixels]")]]
    }

    /// Returns the media type of an image that was not decoded. Invalid images get no image type, because clients would
    /// show them to the model.
    private static func mimeType(of bytes: [UInt8], called name: JSON?, after error: ImageError) -> String {
        let other = "application/octet-stream"
        switch error {
        case .damaged: return other
        // An SVG file may be sent as it is.
        case .notBase64: return ImageType(of: bytes) == .svg ? ImageType.svg.rawValue : other
        case .tooManyBytes, .tooManyPixels: return ImageType(of: bytes)?.rawValue ?? other
        case .unknownFormat:
            if let type = ImageType(of: bytes) { return type.rawValue }
            let type = mimeType(name)
            let isRefuted = type.lowercased() == "image/jpg" || ImageType(rawValue: type.lowercased()) != nil
            return isRefuted ? other : type
        }
    }

    private func linked(
        _ base64: String,
        _ bytes: [UInt8],
        mimeType: String,
        because reason: String?,
        _ budget: inout Budget
    ) async -> [JSON] {
        // Few clients show the description of a link, and clients before 2025-06-18 get no link.
        let note = reason.map { [["type": "text", "text": .string("[not shown: \($0)]")] as JSON] } ?? []
        guard let link = await link(bytes, mimeType: mimeType, for: budget.principal) else {
            return [["type": "text", "text": .string("[an image of \(bytes.count) bytes, which could not be stored]")]]
                + note
        }
        budget.replacers.append(Base64Replacer(text: base64, uri: link.uri))
        return [link.block(because: reason)] + note
    }

    // MARK: Everything else

    private func limitBlock(_ block: JSON, for principal: Principal) async -> [JSON] {
        guard block["type"] != "image", block.approximateSize > Self.limit else { return [block] }
        return await linked(block, for: principal)
    }

    /// Replaces a block by a link, and a text by its beginning and a link.
    private func linked(_ block: JSON, for principal: Principal) async -> [JSON] {
        guard var object = block.object else { return [block] }
        if object["type"] == "text", let text = object["text"]?.string {
            let isJSON = text.first == "{" || text.first == "["
            let link = await link(
                Array(text.utf8),
                mimeType: isJSON ? "application/json" : "text/plain",
                for: principal
            )
            let rest = link.map { "the complete text is at \($0.uri)" } ?? "the rest could not be stored"
            let preview = "\(text.prefix(Self.previewLength))\n[… \(text.utf8.count) bytes in all; \(rest)]"
            object["text"] = .string(preview)
            return [.object(object)] + (link.map { [$0.block()] } ?? [])
        }
        let (bytes, mimeType) = Self.content(of: object) ?? (block.bytes, "application/json")
        guard let link = await link(bytes, mimeType: mimeType, for: principal) else {
            return [["type": "text", "text": .string("[\(bytes.count) bytes, which could not be stored]")]]
        }
        return [link.block()]
    }

    /// Returns the content of an audio block or an embedded resource.
    private static func content(of block: JSONObject) -> (bytes: [UInt8], mimeType: String)? {
        let source = block["resource"]?.object ?? block
        if let text = source["text"]?.string {
            return (Array(text.utf8), mimeType(source["mimeType"], "text/plain"))
        }
        let base64 = source["blob"]?.string ?? source["data"]?.string
        return base64.flatMap { Base64Decoder.decode($0) }.map { (Array($0.data), mimeType(source["mimeType"])) }
    }

    /// Returns a valid media type (RFC 6838), or the default.
    package static func mimeType(_ json: JSON?, _ other: String = "application/octet-stream") -> String {
        guard let text = json?.string, text.utf8.count <= 80, text.split(separator: "/").count == 2 else {
            return other
        }
        let isPlain = text.utf8.allSatisfy { $0.isLetterOrDigit || "/+.-".utf8.contains($0) }
        return isPlain ? text : other
    }

    /// Stores an artifact. Returns nil if the store rejects it; the result then has no link.
    private func link(_ bytes: [UInt8], mimeType: String, for principal: Principal) async -> ArtifactLink? {
        try? await artifacts.save(bytes, mimeType: mimeType, for: principal)
    }
}

extension JSONObject {
    /// Returns the image block with other data.
    fileprivate func withImage(_ data: String, _ mimeType: String) -> JSONObject {
        with("data", .string(data)).with("mimeType", .string(mimeType))
    }
}

extension JSON {
    /// The approximate size as JSON text in bytes, without escapes.
    fileprivate var approximateSize: Int {
        switch self {
        case .null, .bool: 5
        case .number(let number): number.text.utf8.count + 1
        case .string(let text): text.utf8.count + 3
        case .array(let elements): elements.reduce(2) { $0 + $1.approximateSize }
        case .object(let object): object.members.reduce(2) { $0 + $1.name.utf8.count + 4 + $1.value.approximateSize }
        }
    }
}
