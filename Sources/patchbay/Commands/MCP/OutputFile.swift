import FoundationEssentials
import Glibc
import Model
import SystemIO

/// The file of `patchbay call --output`; a hyphen is standard output.
struct OutputFile {
    let path: String

    var isStandardOutput: Bool { path == "-" }

    /// The image format that the name of the file stands for; nil for another name.
    var imageFormat: String? {
        let name = path.lowercased()
        if name.hasSuffix(".png") { return "png" }
        return name.hasSuffix(".jpg") || name.hasSuffix(".jpeg") ? "jpeg" : nil
    }

    /// The first bytes of a file of each format.
    private static let beginnings: [String: [UInt8]] = ["png": [0x89, 0x50, 0x4E, 0x47], "jpeg": [0xFF, 0xD8, 0xFF]]

    /// The ending of the file's name with its dot; nil without an ending.
    private var ending: Substring? {
        let name = path.split(separator: "/", omittingEmptySubsequences: false).last ?? ""
        // The dot of a hidden file begins no ending.
        return name.dropFirst().lastIndex(of: ".").map { name[$0...] }
    }

    /// Checks that the content is an image of the format that the name stands for, and that an image has a name for
    /// images. A name without an ending is for every content.
    ///
    /// The broker converts images. Originals (`--max-px 0`), texts and other formats stay as the app sent them.
    /// - Throws: `CLIError` for other content. The file is not written.
    func checkFormat(of bytes: [UInt8]) throws(CLIError) {
        let actual = Self.beginnings.first { bytes.starts(with: $0.value) }?.key
        guard imageFormat != actual, let end = ending else { return }
        let found = actual.map { "the image is \($0.uppercased())" } ?? "the result is no PNG or JPEG image"
        let other = path.dropLast(end.count)
        let isText = String(validating: bytes, as: UTF8.self) != nil
        let ending = actual.map { $0 == "png" ? ".png" : ".jpg" } ?? (isText ? ".txt" : ".bin")
        throw CLIError.failed(
            "the tool was called, but \(found), so \"\(SanitizedText(path, limit: 500))\" was not written",
            try: "call it again with --output \(SanitizedText(String(other) + ending, limit: 500))"
        )
    }

    /// Checks that the file can be written. Called before the tool, because a write error would lose the result.
    ///
    /// - Throws: `CLIError` if the file cannot be written.
    func check() throws(CLIError) {
        guard !isStandardOutput else { return }
        guard !path.isEmpty else {
            throw .usage("--output is empty; the tool was not called", try: "--output shot.png, or --output - to print")
        }
        if let status = FileStatus(atPath: path) {
            guard status.type != .folder else { throw writeError(EISDIR, "the tool was not called") }
            guard access(path, W_OK) == 0 else { throw writeError(errno, "the tool was not called") }
            return
        }
        let folder = path.lastIndex(of: "/").map { $0 == path.startIndex ? "/" : String(path[..<$0]) } ?? "."
        guard access(folder, W_OK | X_OK) == 0 else { throw writeError(errno, "the tool was not called") }
    }

    /// Writes all bytes and replaces an existing file; blocks. Only its owner can read a private file.
    ///
    /// - Throws: `CLIError` or `BrokenPipe`.
    func write(_ bytes: [UInt8], isPrivate: Bool = false) throws {
        let flags = O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC
        let descriptor = isStandardOutput ? STDOUT_FILENO : open(path, flags, isPrivate ? 0o600 : 0o666)
        guard descriptor >= 0 else { throw writeError(errno, "the tool was called") }
        if isPrivate, !isStandardOutput, FileStatus(atPath: path)?.type == .regular { fchmod(descriptor, 0o600) }
        let failure = BlockingThread.failure(writing: bytes, to: descriptor)
        if isStandardOutput, failure == EPIPE { throw BrokenPipe() }
        let isClosed = isStandardOutput || close(descriptor) == 0
        if let code = failure ?? (isClosed ? nil : errno) { throw writeError(code, "the tool was called") }
    }

    private func writeError(_ code: CInt, _ state: String) -> CLIError {
        let hint =
            switch code {
            case EISDIR: "specify a file in that folder"
            case ENOENT, ENOTDIR: "create the folder, or specify a file in an existing folder"
            case ENOSPC, EDQUOT: "free disk space, or specify a file on another disk"
            default: "specify a file that you can write"
            }
        let reason = String(cString: strerror(code))
        return CLIError.failed(
            "\"\(SanitizedText(path, limit: 500))\" cannot be written (\(reason)); \(state)",
            try: hint
        )
    }
}
