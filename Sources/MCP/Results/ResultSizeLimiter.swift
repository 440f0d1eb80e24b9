import FoundationEssentials
package import Images
package import JSON

/// Brings the result of a tool to what agents' clients take.
///
/// They refuse a result of more than 1,048,576 characters, and images over 5 MB or 2,000 pixels. So images are made smaller,
/// which is said beside them, and what is still heavy goes by reference; a result that is light comes back as it was. An image
/// that is none goes by reference, too: models' APIs refuse it, and the whole conversation from then on.
package struct ResultSizeLimiter: Sendable {
    /// The most bytes of one text, of the structured content, and of all images together, in an answer.
    package static let limit = 1 << 20
    /// How much of a text that goes by reference stands in the answer all the same.
    private static let preview = 2_000
    /// The longest edge of an image that is not opened here; models' APIs refuse longer ones.
    private static let unopenedEdge = 8_000

    private let images: ImageResizer
    private let artifacts: ArtifactStore

    package init(images: ImageResizer, artifacts: ArtifactStore) {
        self.images = images
        self.artifacts = artifacts
    }

    /// - Parameters:
    ///   - result: A `CallToolResult` as an app gave it.
    ///   - maxPixels: The longest edge of an image; 0 for the originals, as links.
    ///   - caller: Who may fetch what goes by reference.
    /// - Returns: The same with other images, and with links in the place of what is heavy.
    package func trim(_ result: JSONObject, maxPixels: Int, for caller: AgentCaller) async -> JSONObject {
        let blocks = result["content"]?.array ?? []
        guard blocks.contains(where: { $0["type"] == "image" }) || JSON.object(result).weight > Self.limit else {
            return result
        }
        var trim = Trim(maxPixels: maxPixels, caller: caller)
        var seen: [JSON] = []
        for block in blocks { seen += await withoutLargeImage(block, &trim) }
        var content: [JSON] = []
        for block in seen { content += await light(trim.substituted(inBlock: block), for: caller) }

        var trimmed = result
        if let structured = result["structuredContent"] {
            let structured = trim.substituted(in: structured)
            trimmed["structuredContent"] = structured
            if structured.weight > Self.limit, let link = await link(structured.bytes, "application/json", caller) {
                // Clients that check it against a schema miss it; none would take it either.
                trimmed["structuredContent"] = nil
                content.append(link.block(because: "the structured content, \(link.size) bytes"))
            }
        }
        if result["content"] != nil { trimmed["content"] = .array(content) }
        return trimmed
    }

    // MARK: Images

    private struct Trim {
        let maxPixels: Int
        let caller: AgentCaller
        /// What images may still take.
        var room = ResultSizeLimiter.limit
        var substitutions: [Base64Replacer] = []

        func substituted(in json: JSON) -> JSON { substitutions.reduce(json) { $1.applied(to: $0) } }

        func substituted(inBlock block: JSON) -> JSON {
            guard !substitutions.isEmpty, block["type"] == "text", var object = block.object,
                let text = object["text"]?.string
            else { return block }
            object["text"] = .string(substitutions.reduce(text) { $1.applied(toText: $0) })
            return .object(object)
        }
    }

    private func withoutLargeImage(_ block: JSON, _ trim: inout Trim) async -> [JSON] {
        guard block["type"] == "image", let object = block.object, let base64 = object["data"]?.string else {
            return [block]
        }
        if trim.maxPixels == 0, let bytes = Data(base64Encoded: base64).map(Array.init) {
            let mimeType = ImageFormat(of: bytes)?.mimeType ?? Self.mimeType(object["mimeType"])
            return await replaced(base64, bytes, mimeType, nil, &trim)
        }
        do throws(ImageError) {
            let (original, fitted) = try await images.reduce(base64: base64, to: trim.maxPixels)
            let data = fitted == original ? base64 : Data(fitted.bytes).base64EncodedString()
            guard data.utf8.count <= trim.room else {
                let reason = "more images than one answer takes"
                return await replaced(base64, original.bytes, original.format.mimeType, reason, &trim)
            }
            trim.room -= data.utf8.count
            guard fitted != original else { return [.object(object.with(data, fitted.format.mimeType))] }
            if let link = await link(original.bytes, original.format.mimeType, trim.caller) {
                trim.substitutions.append(Base64Replacer(text: base64, uri: link.uri))
            }
            return [.object(object.with(data, fitted.format.mimeType))] + Self.note(of: original, fitted)
        } catch {
            let bytes = Data(base64Encoded: base64).map(Array.init) ?? Array(base64.utf8)
            if let image = ImageHeader(of: bytes), image.longEdge <= Self.unopenedEdge,
                base64.utf8.count <= trim.room
            {
                trim.room -= base64.utf8.count
                return [.object(object.with(base64, image.mimeType))]
            }
            let mimeType = Self.mimeType(of: bytes, called: object["mimeType"], after: error)
            return await replaced(base64, bytes, mimeType, error.description, &trim)
        }
    }

    /// Whoever looks at a picture of the screen and taps where it saw something has to know that it saw another size.
    private static func note(of original: ImageFile, _ fitted: ImageFile) -> [JSON] {
        guard (original.width, original.height) != (fitted.width, fitted.height) else { return [] }
        let sizes = "\(original.width)x\(original.height) to \(fitted.width)x\(fitted.height)"
        return [["type": "text", "text": .string("[scaled from \(sizes) pixels]")]]
    }

    /// The type of what was not opened. What is no image is not called one: whoever fetches it would show it to the model.
    private static func mimeType(of bytes: [UInt8], called name: JSON?, after error: ImageError) -> String {
        let other = "application/octet-stream"
        switch error {
        case .damaged, .notBase64: return other
        case .tooManyBytes, .tooManyPixels: return ImageFormat(of: bytes)?.mimeType ?? other
        case .unknownFormat:
            let type = mimeType(name)
            return ["image/png", "image/jpeg", "image/jpg"].contains(type.lowercased()) ? other : type
        }
    }

    private func replaced(
        _ base64: String,
        _ bytes: [UInt8],
        _ mimeType: String,
        _ reason: String?,
        _ trim: inout Trim
    ) async -> [JSON] {
        // Few clients show a link's description, and those before 2025-06-18 get no link.
        let note = reason.map { [["type": "text", "text": .string("[not shown: \($0)]")] as JSON] } ?? []
        guard let link = await link(bytes, mimeType, trim.caller) else {
            return [["type": "text", "text": .string("[an image of \(bytes.count) bytes, which could not be kept]")]]
                + note
        }
        trim.substitutions.append(Base64Replacer(text: base64, uri: link.uri))
        return [link.block(because: reason)] + note
    }

    // MARK: Everything else

    private func light(_ block: JSON, for caller: AgentCaller) async -> [JSON] {
        guard block["type"] != "image", block.weight > Self.limit, var object = block.object else { return [block] }
        if object["type"] == "text", let text = object["text"]?.string {
            let isJSON = text.first == "{" || text.first == "["
            let link = await link(Array(text.utf8), isJSON ? "application/json" : "text/plain", caller)
            let rest = link.map { "the whole is at \($0.uri)" } ?? "the rest could not be kept"
            let preview = "\(text.prefix(Self.preview))\n[… \(text.utf8.count) bytes in all; \(rest)]"
            object["text"] = .string(preview)
            return [.object(object)] + (link.map { [$0.block()] } ?? [])
        }
        let (bytes, mimeType) = Self.content(of: object) ?? (block.bytes, "application/json")
        guard let link = await link(bytes, mimeType, caller) else {
            return [["type": "text", "text": .string("[\(bytes.count) bytes, which could not be kept]")]]
        }
        return [link.block()]
    }

    /// What an audio block or an embedded resource carries.
    private static func content(of block: JSONObject) -> (bytes: [UInt8], mimeType: String)? {
        let carrier = block["resource"]?.object ?? block
        if let text = carrier["text"]?.string {
            return (Array(text.utf8), mimeType(carrier["mimeType"], "text/plain"))
        }
        let base64 = carrier["blob"]?.string ?? carrier["data"]?.string
        return base64.flatMap { Data(base64Encoded: $0) }.map { (Array($0), mimeType(carrier["mimeType"])) }
    }

    /// A media type as RFC 6838 spells it, or what says nothing.
    private static func mimeType(_ json: JSON?, _ other: String = "application/octet-stream") -> String {
        guard let text = json?.string, text.utf8.count <= 80, text.split(separator: "/").count == 2 else {
            return other
        }
        let isPlain = text.utf8.allSatisfy { byte in
            byte == UInt8(ascii: "/") || byte == UInt8(ascii: "+") || byte == UInt8(ascii: ".")
                || byte == UInt8(ascii: "-") || (UInt8(ascii: "a")...UInt8(ascii: "z")).contains(byte | 0x20)
                || (UInt8(ascii: "0")...UInt8(ascii: "9")).contains(byte)
        }
        return isPlain ? text : other
    }

    /// Nil where there is no room for it, which the store has reasons for; the answer goes on without.
    private func link(_ bytes: [UInt8], _ mimeType: String, _ caller: AgentCaller) async -> ArtifactLink? {
        try? await artifacts.keep(bytes, mimeType: mimeType, for: caller)
    }
}

extension JSONObject {
    /// The block of an image with another one in it.
    fileprivate func with(_ data: String, _ mimeType: String) -> JSONObject {
        var block = self
        block["data"] = .string(data)
        block["mimeType"] = .string(mimeType)
        return block
    }
}

extension JSON {
    /// About as many bytes as it has as text; escapes are not counted.
    fileprivate var weight: Int {
        switch self {
        case .null, .bool: 5
        case .number(let number): number.text.utf8.count + 1
        case .string(let text): text.utf8.count + 3
        case .array(let elements): elements.reduce(2) { $0 + $1.weight }
        case .object(let object): object.members.reduce(2) { $0 + $1.name.utf8.count + 4 + $1.value.weight }
        }
    }
}
