import FoundationEssentials
import Glibc
import Samples
import SystemIO
import TestSupport
import Testing

@Suite(.scratchFolder) struct StateFileTests {
    private let scratch = ScratchFolder.current

    private func file(in scratch: ScratchFolder) -> StateFile<[String]> {
        StateFile("words", in: scratch.path, logger: .quiet)
    }

    private func path(in scratch: ScratchFolder) -> String { "\(scratch.path)/words.json" }

    @Test func `read returns the last written value, and nil without a file`() async throws {
        #expect(try await file(in: scratch).read() == nil)
        try await file(in: scratch).write(["a"])
        try await file(in: scratch).write(["b", "ü"])

        #expect(try await file(in: scratch).read() == ["b", "ü"])
    }

    @Test func `a state file has mode 0600 and leaves no temporary file`() async throws {
        let old = umask(0)
        defer { umask(old) }
        try await file(in: scratch).write([])

        var status = stat()
        try #require(stat(path(in: scratch), &status) == 0)
        #expect(status.st_mode & 0o777 == 0o600)
        #expect(!FileManager.default.fileExists(atPath: path(in: scratch) + ".new"))
    }

    @Test(arguments: [
        #"{"schema":1,"content":["a""#, "", #"{"schema":2,"content":["a"]}"#, #"{"schema":1,"content":7}"#,
    ])
    func `a damaged file is renamed unchanged, and so is a second one`(text: String) async throws {
        for aside in [".unreadable", ".unreadable-2"] {
            try Data(text.utf8).write(to: URL(filePath: path(in: scratch)))
            #expect(try await file(in: scratch).read() == nil)
            #expect(try Data(contentsOf: URL(filePath: path(in: scratch) + aside)) == Data(text.utf8))
        }
    }

    @Test func `a file with unreadable bytes fails with a message and is neither renamed nor replaced`()
        async throws
    {
        // The folder simulates a disk error: open(2) succeeds and read(2) fails, for root too.
        try FileManager.default.createDirectory(atPath: path(in: scratch), withIntermediateDirectories: false)
        let file = file(in: scratch)

        let error = await #expect(throws: StateError.self) { _ = try await file.read() }

        #expect(error?.description.contains("words.json could not be read") == true)
        await #expect(throws: StateError.self) { try await file.write(["b"]) }
        let names = try FileManager.default.contentsOfDirectory(atPath: scratch.path)
        #expect(names == ["words.json"])
    }

    @Test func `a value recovered from a damaged file is returned`() async throws {
        try Data("one two".utf8).write(to: URL(filePath: path(in: scratch)))

        let salvaged = try await file(in: scratch).read {
            String(decoding: $0, as: UTF8.self).split(separator: " ").map(String.init)
        }

        #expect(salvaged == ["one", "two"])
    }

    @Test func `a failed write names the file and keeps the old content`() async throws {
        try await file(in: scratch).write(["a"])
        // A folder at the path of the temporary file makes open(2) fail, for root too.
        try FileManager.default.createDirectory(atPath: path(in: scratch) + ".new", withIntermediateDirectories: false)

        let error = await #expect(throws: StateError.self) { try await file(in: scratch).write(["b"]) }

        #expect(error?.description.contains("words.json could not be written") == true)
        #expect(try await file(in: scratch).read() == ["a"])
    }
}
