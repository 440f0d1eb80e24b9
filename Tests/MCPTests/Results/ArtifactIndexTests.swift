import Testing

@testable import MCP

@Suite struct ArtifactIndexTests {
    private func put(
        _ shelf: inout ArtifactIndex,
        _ sha: String,
        _ size: Int,
        for holder: String = "grant:a",
        at seconds: Int = 0
    ) -> [String] {
        shelf.put(sha, mimeType: "text/plain", size: size, for: holder, at: .seconds(seconds))
    }

    @Test func `what was put there longest ago makes room, by bytes and by places`() {
        var shelf = ArtifactIndex(places: 3, bytes: 100)
        #expect(put(&shelf, "a", 40, at: 0).isEmpty)
        #expect(put(&shelf, "b", 40, at: 1).isEmpty)

        #expect(put(&shelf, "c", 40, at: 2) == ["a"])
        #expect(put(&shelf, "d", 10, at: 3).isEmpty)
        #expect(put(&shelf, "e", 1, at: 4) == ["b"])
        #expect(shelf.used == 51)
        #expect(put(&shelf, "f", 100, at: 5) == ["c", "d", "e"])
        #expect(shelf.used == 100)
        #expect(!shelf.fits(101))
    }

    @Test func `after an hour it is gone, and asking again does not keep it`() {
        var shelf = ArtifactIndex()
        _ = put(&shelf, "a", 1, at: 0)
        _ = put(&shelf, "b", 1, at: 10)

        #expect(shelf.find("a", for: nil, at: .seconds(3_599)) != nil)
        #expect(shelf.find("a", for: nil, at: .seconds(3_600)) == nil)
        #expect(shelf.expire(at: .seconds(3_605)) == ["a"])
        #expect(shelf.used == 1)
    }

    @Test func `put there again it stays an hour more, for both`() {
        var shelf = ArtifactIndex()
        _ = put(&shelf, "a", 5, for: "grant:a", at: 0)
        _ = put(&shelf, "a", 5, for: "grant:b", at: 3_000)

        #expect(shelf.used == 5)
        #expect(shelf.find("a", for: "grant:a", at: .seconds(4_000)) != nil)
        #expect(shelf.find("a", for: "grant:b", at: .seconds(4_000)) != nil)
    }

    @Test func `others do not learn that it is there`() {
        var shelf = ArtifactIndex()
        _ = put(&shelf, "a", 1, for: "grant:a")

        #expect(shelf.find("a", for: "grant:b", at: .zero) == nil)
        #expect(shelf.find("a", for: nil, at: .zero) != nil)
    }
}
