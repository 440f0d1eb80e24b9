import FoundationEssentials
import JSON

/// A tool's result for people: its texts, and what else there is in a line each.
struct ToolResultText {
    let lines: [String]
    /// The first picture, sound or file in it.
    let file: Data?
    let isError: Bool

    init(_ result: JSONObject) {
        let blocks = result["content"]?.array ?? []
        isError = result["isError"] == true
        file = blocks.lazy.compactMap(Self.data).first
        let lines = blocks.map(Self.line)
        // What a tool only says in structure is said here, too.
        self.lines = lines.isEmpty ? result["structuredContent"].map { [$0.text] } ?? [] : lines
    }

    private static func line(_ block: JSON) -> String {
        let kind = block["type"]?.string ?? "something"
        let mimeType = (block["mimeType"] ?? block["resource"]?["mimeType"])?.string ?? kind
        if let text = block["text"]?.string ?? block["resource"]?["text"]?.string { return text }
        if let data = data(block) { return "[\(mimeType), \(Words.bytes(UInt64(data.count))); --output FILE saves it]" }
        let size = block["size"]?.int.map { ", \(Words.bytes(UInt64(max(0, $0))))" } ?? ""
        guard let uri = (block["uri"] ?? block["resource"]?["uri"])?.string else { return "[\(kind)]" }
        return "\(uri)  [\(mimeType)\(size)]"
    }

    private static func data(_ block: JSON) -> Data? {
        (block["data"] ?? block["resource"]?["blob"])?.string.flatMap { Data(base64Encoded: $0) }
    }
}
