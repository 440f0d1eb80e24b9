import Testing

@testable import Apps

@Suite struct ArtifactIndexTests {
    private func put(
        _ index: inout ArtifactIndex,
        _ sha: String,
        _ size: Int,
        for holder: String = "grant:a",
        at seconds: Int = 0
    ) -> [String] { index.put(sha, mimeType: "text/plain", size: size, for: holder, at: .seconds(seconds)) }

    @Test func `the oldest entries are removed at the byte limit and at the entry limit`() {
        var index = ArtifactIndex(maxEntries: 3, maxBytes: 100)
        #expect(put(&index, "a", 40, at: 0).isEmpty)
        #expect(put(&index, "b", 40, at: 1).isEmpty)

        #expect(put(&index, "c", 40, at: 2) == ["a"])
        #expect(put(&index, "d", 10, at: 3).isEmpty)
        #expect(put(&index, "e", 1, at: 4) == ["b"])
        #expect(index.usedBytes == 51)
        #expect(put(&index, "f", 100, at: 5) == ["c", "d", "e"])
        #expect(index.usedBytes == 100)
        #expect(!index.fits(101))
    }

    @Test func `an entry expires after 1 h, and reading does not extend its lifetime`() {
        var index = ArtifactIndex()
        _ = put(&index, "a", 1, at: 0)
        _ = put(&index, "b", 1, at: 10)

        #expect(index.find("a", for: nil, at: .seconds(3_599)) != nil)
        #expect(index.find("a", for: nil, at: .seconds(3_600)) == nil)
        #expect(index.expire(at: .seconds(3_605)) == ["a"])
        #expect(index.usedBytes == 1)
    }

    @Test func `an entry added again lives 1 h longer for both holders`() {
        var index = ArtifactIndex()
        _ = put(&index, "a", 5, for: "grant:a", at: 0)
        _ = put(&index, "a", 5, for: "grant:b", at: 3_000)

        #expect(index.usedBytes == 5)
        #expect(index.find("a", for: "grant:a", at: .seconds(4_000)) != nil)
        #expect(index.find("a", for: "grant:b", at: .seconds(4_000)) != nil)
    }

    @Test func `an entry is invisible to other holders`() {
        var index = ArtifactIndex()
        _ = put(&index, "a", 1, for: "grant:a")

        #expect(index.find("a", for: "grant:b", at: .zero) == nil)
        #expect(index.find("a", for: nil, at: .zero) != nil)
    }
}
