import FoundationEssentials
import Glibc
import SystemIO
import TestSupport
import Testing

@Suite(.scratchFolder) struct AtomicFileTests {
    private let scratch = ScratchFolder.current

    private func content(_ path: String) -> String? {
        FileManager.default.contents(atPath: path).map { String(decoding: $0, as: UTF8.self) }
    }

    @Test func `a replaced file has the new content and mode 0600`() async throws {
        let path = scratch.file("a")
        try Data("old".utf8).write(to: URL(filePath: path))
        chmod(path, 0o666)

        try AtomicFile.replace(path, with: Data("new".utf8))

        var status = stat()
        try #require(stat(path, &status) == 0)
        #expect(content(path) == "new" && status.st_mode & 0o777 == 0o600)
    }

    @Test func `a temporary file left by a crash is replaced, and a link in its place is not followed`() async throws {
        let (path, other) = (scratch.file("a"), scratch.file("other"))
        try Data("other".utf8).write(to: URL(filePath: other))
        try #require(symlink(other, "\(path).new") == 0)

        try AtomicFile.replace(path, with: Data("new".utf8))

        #expect(content(path) == "new" && content(other) == "other")
        #expect(try FileManager.default.contentsOfDirectory(atPath: scratch.path).sorted() == ["a", "other"])
    }

    @Test func `a failed write names the errno and keeps the old file`() async throws {
        // A file cannot replace a folder, not even as root.
        let path = scratch.file("a")
        try FileManager.default.createDirectory(atPath: path, withIntermediateDirectories: false)

        let error = #expect(throws: SocketError.self) { try AtomicFile.replace(path, with: Data("new".utf8)) }

        #expect(error?.reason == SocketError.message(for: EISDIR))
        #expect(try FileManager.default.contentsOfDirectory(atPath: scratch.path) == ["a"])
    }
}
