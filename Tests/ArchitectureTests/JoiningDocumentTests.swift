import Foundation
import Testing

/// The snippets for apps that register themselves.
@Suite struct JoiningDocumentTests {
    @Test func `joining.md links to each file of docs/joining, which has at most 40 lines`() throws {
        let folder = ModuleDependencyTests.root.appending(path: "docs")
        let document = try String(contentsOf: folder.appending(path: "joining.md"), encoding: .utf8)
        for file in try FileManager.default.contentsOfDirectory(atPath: folder.appending(path: "joining").path) {
            let snippet = try String(contentsOf: folder.appending(path: "joining/\(file)"), encoding: .utf8)
            #expect(document.contains("](joining/\(file))"), "\(file)")
            #expect(snippet.split(separator: "\n", omittingEmptySubsequences: false).count <= 41, "\(file)")
        }
    }
}
