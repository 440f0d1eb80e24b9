import Glibc
import Model

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
