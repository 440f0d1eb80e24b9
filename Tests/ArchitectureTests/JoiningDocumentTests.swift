import Foundation
import Testing

/// The snippets for apps that register themselves.
@Suite struct JoiningDocumentTests {
    private static let files = [
        "PatchbayRegistration.swift", "PairingCode.swift", "PinnedSession.swift", "PatchbayRegistration.kt",
        "patchbay_registration.dart",
    ]
    private static let languages = ["swift": "swift", "kt": "kotlin", "dart": "dart"]

    @Test(arguments: files) func `joining.md has each snippet as in its file`(file: String) throws {
        let folder = ModuleDependencyTests.root.appending(path: "docs")
        let document = try String(contentsOf: folder.appending(path: "joining.md"), encoding: .utf8)
        let snippet = try String(contentsOf: folder.appending(path: "joining/\(file)"), encoding: .utf8)
        let language = try #require(Self.languages[String(file.split(separator: ".")[1])])
        #expect(document.contains("```\(language)\n\(snippet)```\n"), "\(file) differs from docs/joining.md")
        #expect(snippet.split(separator: "\n", omittingEmptySubsequences: false).count <= 40, "\(file)")
    }

    @Test func `every file of docs/joining is a snippet of the document`() throws {
        let folder = ModuleDependencyTests.root.appending(path: "docs/joining")
        #expect(try Set(FileManager.default.contentsOfDirectory(atPath: folder.path)) == Set(Self.files))
    }
}
