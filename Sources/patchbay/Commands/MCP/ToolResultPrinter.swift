import FoundationEssentials
import Model

/// Formats a tool result: texts unchanged, one line for each other content block.
struct ToolResultPrinter {
    /// The part of a result that `--output` saves.
    enum SavedPart: Equatable {
        case bytes(Data)
        /// The SHA-256 of an artifact in the broker.
        case artifact(String)
    }

    private static let artifactPrefix = "patchbay://artifact/"

    let isError: Bool
    /// The code of a failure that Patchbay itself reports; nil for another result.
    let failure: String?
    /// The first image, audio or file; else the complete text; else the structured content; else nil.
    let savedPart: SavedPart?
    private let blocks: [JSON]
    private let structure: JSON?
    /// The index of the block of the saved part; nil if the saved part is the complete text or the structured content.
    private let source: Int?

    init(_ result: JSONObject) {
        isError = result["isError"] == true
        failure = isError ? result["_meta"]?["patchbay/failure"]?.string : nil
        blocks = result["content"]?.array ?? []
        structure = result["structuredContent"]
        source = blocks.firstIndex { Self.savedPart(of: $0) != nil }
        let texts = blocks.compactMap(Self.text)
        savedPart =
            if let source {
                Self.savedPart(of: blocks[source])
            } else if !texts.isEmpty {
                .bytes(Data((texts.joined(separator: "\n") + "\n").utf8))
            } else {
                structure.map { .bytes(Data(($0.text + "\n").utf8)) }
            }
    }

    /// The exit status for a result with an error.
    var status: ExitStatus { failure == "unknown-tool" || failure == "not-found" ? .notFound : .error }

    /// The lines to print.
    var lines: [String] {
        // A result with only structured content is printed as JSON.
        blocks.isEmpty ? structure.map { [$0.text] } ?? [] : blocks.map { Self.line($0) }
    }

    /// Returns the lines to print after a part was saved; one line replaces the part.
    func lines(savedAs path: String, size: Int) -> [String] {
        let saved = "\(Formatting.bytes(UInt64(size))); saved as \(path)"
        guard let source else { return ["[\(saved)]"] }
        return blocks.indices.map { $0 == source ? "[\(Self.mimeType(blocks[$0])), \(saved)]" : Self.line(blocks[$0]) }
    }

    private static func line(_ block: JSON) -> String {
        if let text = text(block) { return text }
        let hint = savedPart(of: block) == nil ? "" : "; --output FILE saves it"
        let mimeType = mimeType(block)
        if let data = data(block) { return "[\(mimeType), \(Formatting.bytes(UInt64(data.count)))\(hint)]" }
        let size = block["size"]?.int.map { ", \(Formatting.bytes(UInt64(max(0, $0))))" } ?? ""
        return uri(block).map { "\($0)  [\(mimeType)\(size)\(hint)]" } ?? "[\(mimeType)]"
    }

    private static func savedPart(of block: JSON) -> SavedPart? {
        if let data = data(block) { return .bytes(data) }
        guard block["type"] == "resource_link", let uri = uri(block), uri.hasPrefix(artifactPrefix) else { return nil }
        return .artifact(String(uri.dropFirst(artifactPrefix.count)))
    }

    private static func text(_ block: JSON) -> String? { (block["text"] ?? block["resource"]?["text"])?.string }

    private static func uri(_ block: JSON) -> String? { (block["uri"] ?? block["resource"]?["uri"])?.string }

    private static func mimeType(_ block: JSON) -> String {
        (block["mimeType"] ?? block["resource"]?["mimeType"] ?? block["type"])?.string ?? "something"
    }

    private static func data(_ block: JSON) -> Data? {
        (block["data"] ?? block["resource"]?["blob"])?.string.flatMap { Data(base64Encoded: $0) }
    }
}
