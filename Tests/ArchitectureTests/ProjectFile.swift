import Foundation
import Testing

/// One text file of the project, by its path from the project's folder.
struct ProjectFile: Sendable, CustomTestStringConvertible {
    let path: String

    static let root = URL(filePath: #filePath).deletingLastPathComponent().deletingLastPathComponent()
        .deletingLastPathComponent()

    var url: URL { Self.root.appending(path: path) }
    var isSwift: Bool { path.hasSuffix(".swift") }
    var testDescription: String { path }

    func text() throws -> String { try String(contentsOf: url, encoding: .utf8) }

    func lines() throws -> [String] { try text().components(separatedBy: "\n") }

    static func isDocComment(_ line: String) -> Bool { line.contains(/^\s*\/\/\//) }

    static func swift(in folder: String) throws -> [ProjectFile] { try files(in: folder, ending: ".swift") }

    /// README, the other documents of the top level, and `docs/`.
    static func documents() throws -> [ProjectFile] {
        let names = try FileManager.default.contentsOfDirectory(atPath: root.path).filter { $0.hasSuffix(".md") }
        return try names.sorted().map { ProjectFile(path: $0) } + files(in: "docs", ending: ".md")
    }

    private static func files(in folder: String, ending: String) throws -> [ProjectFile] {
        let paths = try #require(FileManager.default.subpaths(atPath: root.appending(path: folder).path))
        return paths.filter { $0.hasSuffix(ending) }.sorted().map { ProjectFile(path: "\(folder)/\($0)") }
    }
}
