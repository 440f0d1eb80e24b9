import Foundation
import Testing

@testable import API

@Suite struct DashboardPageTests {
    /// The folder of the page's files in the sources.
    private static let folder = URL(filePath: #filePath).deletingLastPathComponent().deletingLastPathComponent()
        .deletingLastPathComponent().appending(path: "Sources/CDashboard/Page")

    @Test func `every file of the folder is part of the program, with the same bytes`() throws {
        let names = try FileManager.default.contentsOfDirectory(atPath: Self.folder.path).filter { !$0.hasPrefix(".") }
        let embedded = DashboardPage.embedded

        #expect(embedded.keys.sorted() == names.sorted())
        for name in names {
            #expect(embedded[name] == Array(try Data(contentsOf: Self.folder.appending(path: name))), "\(name)")
        }
    }

    /// The second limit is in docs/dashboard.md.
    @Test func `all files of the dashboard have at most 305 kB, and a browser loads at most 108 kB`() {
        let (consent, dashboard) = DashboardPage.embedded.reduce(into: (0, 0)) { sums, file in
            if file.key.hasPrefix("consent.") { sums.0 += file.value.count } else { sums.1 += file.value.count }
        }
        #expect(dashboard <= 305_000)
        #expect(consent <= 5_000)
        #expect(DashboardPage.shared.compressedSize <= 108_000)
    }

    @Test func `the document names the folder of the other files`() throws {
        let page = DashboardPage(["index.html": Array("<script src={{base}}app.js>".utf8), "app.js": [1]])

        #expect(String(decoding: page.index.bytes, as: UTF8.self) == "<script src=dashboard/\(page.hash)/app.js>")
        #expect(page.hash.count == 16)
        #expect(page.file("app.js", hash: page.hash)?.bytes == [1])
        #expect(page.file("app.js", hash: page.hash)?.mediaType == "text/javascript; charset=utf-8")
        #expect(page.index.mediaType == "text/html; charset=utf-8")
    }

    @Test func `the document of the consent names the same folder from its own address`() {
        let page = DashboardPage(["index.html": [], "consent.html": Array("<script src={{base}}a.js>".utf8)])

        #expect(String(decoding: page.consent.bytes, as: UTF8.self) == "<script src=../dashboard/\(page.hash)/a.js>")
        #expect(page.file("consent.html", hash: page.hash) == nil)
    }

    @Test func `a file is compressed once, with gzip`() throws {
        let page = DashboardPage(["index.html": [], "app.js": [UInt8](repeating: 97, count: 10_000)])
        let file = try #require(page.file("app.js", hash: page.hash))
        #expect(file.compressed.count < 100 && file.compressed.starts(with: [0x1F, 0x8B, 8]))
        #expect(page.compressedSize == page.index.compressed.count + file.compressed.count)
        #expect(file.entityTag.hasPrefix("W/\""))
    }

    @Test func `another hash and another name lead to nothing`() {
        let page = DashboardPage(["index.html": [], "app.js": [1]])

        #expect(page.file("app.js", hash: "0123456789abcdef") == nil)
        #expect(page.file("app.js", hash: "") == nil)
        #expect(page.file("index.html", hash: page.hash) == nil)
        #expect(page.file("../app.js", hash: page.hash) == nil)
    }

    @Test func `the hash depends on every byte and on every name`() {
        let hashes = [
            ["index.html": [], "app.js": [1, 2]], ["index.html": [], "app.js": [1, 3]],
            ["index.html": [], "app.css": [1, 2]], ["index.html": [1], "app.js": [2]],
            ["index.html": [], "a": [1], "b": [2]], ["index.html": [], "a": [], "b": [1, 2]],
        ].map { DashboardPage($0).hash }

        #expect(Set(hashes).count == hashes.count)
    }

    @Test func `the policy allows no script of another origin, no inline script and no frame`() {
        let policy = DashboardPage.contentSecurityPolicy
        let parts = ["default-src 'self'", "img-src 'self' blob: data:", "frame-ancestors 'none'", "base-uri 'none'"]
        #expect(policy == (parts + ["form-action 'none'"]).joined(separator: "; "))
    }
}
