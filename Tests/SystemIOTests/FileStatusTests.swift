import Glibc
import SystemIO
import TestSupport
import Testing

@Suite(.scratchFolder) struct FileStatusTests {
    private let scratch = ScratchFolder.current

    @Test func `a file has its type, mode, owner and size`() async throws {
        let path = scratch.file("file")
        let number = open(path, O_WRONLY | O_CREAT | O_CLOEXEC, 0o600)
        let file = Descriptor(owning: number)
        #expect(write(file.number, "abc", 3) == 3)
        #expect(fchmod(file.number, 0o640) == 0)

        let status = try #require(FileStatus(atPath: path))
        #expect(status == FileStatus(of: file.number))
        #expect(status.type == .regular && status.size == 3 && status.links == 1)
        #expect(status.owner == geteuid() && status.group == getegid())
        #expect(status.modeText == "0640" && !status.isPrivate)
        #expect(status.modificationTime > 0)
    }

    @Test func `a symbolic link is followed unless the link itself is asked for`() async throws {
        let link = scratch.file("link")
        #expect(symlink(scratch.path, link) == 0)
        #expect(FileStatus(atPath: link)?.type == .folder)
        #expect(FileStatus(atPath: link, followsLinks: false)?.type == .link)
    }

    @Test func `a missing file has no status, and the reason is in errno`() {
        #expect(FileStatus(atPath: "/does/not/exist") == nil && errno == ENOENT)
        #expect(FileStatus(of: -1) == nil && errno == EBADF)
    }
}
