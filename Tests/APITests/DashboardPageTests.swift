import Foundation
import Testing

@testable import API

@Suite struct DashboardPageTests {
    /// The folder of the page's files in the sources.
    private static let folder = URL(filePath: #filePath).deletingLastPathComponent().deletingLastPathComponent()
        .deletingLastPathComponent().appending(path: "Sources/CDashboard/Page")

    @Test func `every file of the folder is part of the program, with the same bytes`() throws {
        let names = try FileManager.default.contentsOfDirectory(atPath: Self.folder.path).filter { !$0.hasPrefix(".") }
        var files: [String: [UInt8]] = [:]
        for name in names { files[name] = Array(try Data(contentsOf: Self.folder.appending(path: name))) }
        // The sources of the one stylesheet.
        let views = files.removeValue(forKey: "views.css") ?? []
        files["app.css"]? += views

        #expect(DashboardPage.embedded == files)
    }

    /// The second limit is in docs/dashboard.md.
    @Test func `the dashboard has at most 280 kB and one stylesheet, and a browser loads at most 98 kB`() throws {
        let page = DashboardPage.shared
        let names = DashboardPage.embedded.keys.filter { !$0.hasSuffix(".html") && !$0.hasPrefix("consent.") }
        let files = try names.map { try #require(page.file($0, hash: page.hash)) }

        #expect(files.reduce(page.index.bytes.count) { $0 + $1.bytes.count } <= 280_000)
        #expect(page.compressedSize <= 98_000)
        for document in [page.index, page.consent] {
            #expect(String(decoding: document.bytes, as: UTF8.self).matches(of: /rel="stylesheet"/).count == 1)
        }
    }

    @Test func `indentation and lines of comments are not sent, and every other line keeps its number`() {
        let code = """
            /** A comment
             * of two lines. */
            const a = 'b//c'; // Stays.
              // Goes.
              f(); /* Stays. */

              /* Goes. */
            * {color: red}
            """
        let shortened = DashboardPage.shortened(Array(code.utf8))
        let lines = String(decoding: shortened, as: UTF8.self).split(separator: "\n", omittingEmptySubsequences: false)

        #expect(lines == ["", "", "const a = 'b//c'; // Stays.", "", "f(); /* Stays. */", "", "", "* {color: red}"])
    }

    @Test func `a comment that begins a line of the sources ends one, and no text spans lines`() throws {
        let names = try FileManager.default.contentsOfDirectory(atPath: Self.folder.path)
        for name in names where name.hasSuffix(".js") || name.hasSuffix(".css") {
            let text = try String(contentsOf: Self.folder.appending(path: name), encoding: .utf8)
            for (number, line) in text.split(separator: "\n", omittingEmptySubsequences: false).enumerated() {
                let (line, place) = (line.drop { $0 == " " }, "\(name):\(number + 1)")
                #expect(!line.hasPrefix("/*") || !line.dropLast(2).contains("*/"), "\(place)")
                #expect(line.count { $0 == "`" } % 2 == 0 || line.contains("'`'"), "\(place)")
                #expect(!line.hasSuffix("\\"), "\(place)")
            }
        }
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
