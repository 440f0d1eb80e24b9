import FoundationEssentials
import Glibc
import JSON
import Model

/// A tool's result for people: its texts, and what else there is in a line each.
struct ToolResultPrinter {
    /// What of a result goes into a file.
    enum Yield: Equatable {
        case bytes(Data)
        /// Kept by the broker under this SHA-256.
        case artifact(String)
    }

    private static let artifactPrefix = "patchbay://artifact/"

    let isError: Bool
    /// The first picture, sound or file, else the whole text, else the structured content; nil where there is none of them.
    let yield: Yield?
    private let blocks: [JSON]
    private let structure: JSON?
    /// The block that the file is from; nil where it is from all of them.
    private let source: Int?

    init(_ result: JSONObject) {
        isError = result["isError"] == true
        blocks = result["content"]?.array ?? []
        structure = result["structuredContent"]
        source = blocks.firstIndex { Self.yield(of: $0) != nil }
        let texts = blocks.compactMap(Self.text)
        yield =
            if let source {
                Self.yield(of: blocks[source])
            } else if !texts.isEmpty {
                .bytes(Data((texts.joined(separator: "\n") + "\n").utf8))
            } else {
                structure.map { .bytes(Data(($0.text + "\n").utf8)) }
            }
    }

    var lines: [String] {
        // What a tool only says in structure is said here, too.
        blocks.isEmpty ? structure.map { [$0.text] } ?? [] : blocks.map { Self.line($0) }
    }

    /// The same after what it yields was written to a file, in whose place a line stands.
    func lines(savedAs path: String, size: Int) -> [String] {
        let saved = "\(Formatting.bytes(UInt64(size))); saved as \(path)"
        guard let source else { return ["[\(saved)]"] }
        return blocks.indices.map { $0 == source ? "[\(Self.mimeType(blocks[$0])), \(saved)]" : Self.line(blocks[$0]) }
    }

    private static func line(_ block: JSON) -> String {
        if let text = text(block) { return text }
        let hint = yield(of: block) == nil ? "" : "; --output FILE saves it"
        let mimeType = mimeType(block)
        if let data = data(block) { return "[\(mimeType), \(Formatting.bytes(UInt64(data.count)))\(hint)]" }
        let size = block["size"]?.int.map { ", \(Formatting.bytes(UInt64(max(0, $0))))" } ?? ""
        return uri(block).map { "\($0)  [\(mimeType)\(size)\(hint)]" } ?? "[\(mimeType)]"
    }

    private static func yield(of block: JSON) -> Yield? {
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

/// The file that `patchbay call --output` names; a hyphen is standard output.
struct OutputFile {
    let path: String

    var isStandardOutput: Bool { path == "-" }

    /// Whether it looks as if it could be written: to be asked before a tool is called, whose result would be lost.
    ///
    /// - Throws: `CLIError`.
    func check() throws(CLIError) {
        guard !isStandardOutput else { return }
        var facts = stat()
        if stat(path, &facts) == 0 {
            guard facts.st_mode & S_IFMT != S_IFDIR else { throw complaint(EISDIR, "nothing was called") }
            guard access(path, W_OK) == 0 else { throw complaint(errno, "nothing was called") }
            return
        }
        let folder = path.lastIndex(of: "/").map { $0 == path.startIndex ? "/" : String(path[..<$0]) } ?? "."
        guard !path.isEmpty, access(folder, W_OK | X_OK) == 0 else {
            throw complaint(path.isEmpty ? ENOENT : errno, "nothing was called")
        }
    }

    /// Writes all of it, in the place of what was there; blocks.
    ///
    /// - Throws: `CLIError`; `BrokenPipe`.
    func write(_ bytes: [UInt8]) throws {
        let descriptor = isStandardOutput ? STDOUT_FILENO : open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0o666)
        guard descriptor >= 0 else { throw complaint(errno, "the tool was called") }
        let failure = BlockingThread.failure(writing: bytes, to: descriptor)
        if isStandardOutput, failure == EPIPE { throw BrokenPipe() }
        let isClosed = isStandardOutput || close(descriptor) == 0
        if let code = failure ?? (isClosed ? nil : errno) { throw complaint(code, "the tool was called") }
    }

    private func complaint(_ code: CInt, _ state: String) -> CLIError {
        let remedy =
            switch code {
            case EISDIR: "name a file in that folder"
            case ENOENT, ENOTDIR: "make its folder, or name a file in one that is there"
            case ENOSPC, EDQUOT: "make room, or name a file elsewhere"
            default: "name a file that you may write"
            }
        let reason = String(cString: strerror(code))
        return CLIError(
            status: .error,
            message: "\"\(SanitizedText(path, limit: 500))\" cannot be written (\(reason)); \(state)",
            remedy: remedy
        )
    }
}
