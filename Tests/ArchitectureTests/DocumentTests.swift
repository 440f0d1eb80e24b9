import Foundation
import Testing

/// The documents agree with the project's files.
@Suite struct DocumentTests {
    @Test func `README has at most 120 lines`() throws {
        #expect(try ProjectFile(path: "README.md").lines().count <= 121)
    }

    @Test(arguments: try ProjectFile.documents())
    func `a relative link of a document leads to a file`(document: ProjectFile) throws {
        let folder = document.url.deletingLastPathComponent()
        for match in try document.text().matches(of: /\]\((?<target>[^)#\s]+)[^)]*\)/) {
            let target = String(match.target)
            guard !target.contains("://") else { continue }
            let path = folder.appending(path: target).standardizedFileURL.path
            #expect(FileManager.default.fileExists(atPath: path), "\(document.path) links to \(target)")
        }
    }

    @Test(arguments: try ProjectFile.documents())
    func `a make target of a document is in the Makefile`(document: ProjectFile) throws {
        let makefile = try ProjectFile(path: "Makefile").text()
        let targets = Set(makefile.matches(of: /(?m)^([a-z0-9-]+):/).map { String($0.1) })
        for match in try document.text().matches(of: /(?m)(?:`|^|sudo |&& )make (?<target>[a-z0-9-]+)/) {
            #expect(targets.contains(String(match.target)), "\(document.path) names make \(match.target)")
        }
    }
}
