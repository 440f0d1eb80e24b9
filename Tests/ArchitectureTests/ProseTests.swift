import Foundation
import Testing

/// The rules of CONTRIBUTING.md for comments and documents, as far as a program can check them.
@Suite struct ProseTests {
    @Test(arguments: try ProjectFile.swift(in: "Sources"))
    func `a doc comment begins with its subject`(file: ProjectFile) throws {
        let lines = try file.lines()
        for (index, line) in lines.enumerated() where ProjectFile.isDocComment(line) {
            guard index == 0 || !ProjectFile.isDocComment(lines[index - 1]) else { continue }
            let begins = line.contains(
                /^\s*\/\/\/ (Who|Whose|Whom|What|Whoever|Whatever|That which|Of|How|Where|Whether)\b/
            )
            #expect(!begins, "\(file.path):\(index + 1): \(line)")
        }
    }

    @Test(arguments: try ProjectFile.swift(in: "Sources") + ProjectFile.documents())
    func `comments and documents name their subjects instead of somebody`(file: ProjectFile) throws {
        for (index, line) in try file.lines().enumerated() where !file.isSwift || ProjectFile.isDocComment(line) {
            let hasPronoun = line.lowercased().contains(/\b(somebody|nobody|whoever|anybody|everybody)\b/)
            #expect(!hasPronoun, "\(file.path):\(index + 1): \(line)")
        }
    }
}
