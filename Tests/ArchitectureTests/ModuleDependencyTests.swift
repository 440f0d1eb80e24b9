import Foundation
import Testing

/// The dependencies between modules: each module imports only the modules of its line in `docs/development.md`.
///
/// The compiler rejects an import of an undeclared module but accepts transitive imports, even with
/// `--explicit-target-dependency-import-check error`. The tests therefore compare the import lines with the table.
@Suite struct ModuleDependencyTests {
    static let systemModules: Set<String> = ["FoundationEssentials", "Glibc", "Synchronization"]
    /// The modules and their imports, as the table of `docs/development.md` has them.
    static let allowedImports: [String: Set<String>] = {
        let text = (try? ProjectFile(path: "docs/development.md").text()) ?? ""
        return Dictionary(
            text.matches(of: /(?m)^\| `(?<module>\w+)` \|[^|]*\|(?<imports>[\w, ]*)\|$/).map { match in
                (String(match.module), Set(match.imports.split(separator: /[, ]+/).map(String.init)))
            },
            uniquingKeysWith: { $0.union($1) }
        )
    }()

    static let root = URL(filePath: #filePath).deletingLastPathComponent().deletingLastPathComponent()
        .deletingLastPathComponent()

    /// The Swift files of a folder, without those that protoc has generated.
    static func files(in folder: String) throws -> [URL] {
        let folder = root.appending(path: folder)
        return try #require(FileManager.default.subpaths(atPath: folder.path))
            .filter { $0.hasSuffix(".swift") && !$0.hasSuffix(".pb.swift") }.map { folder.appending(path: $0) }
    }

    @Test(arguments: allowedImports.keys.sorted())
    func `a module imports only the modules of its line in the table`(module: String) throws {
        let files = try Self.files(in: "Sources/\(module)")
        #expect(!files.isEmpty)
        for file in files {
            for line in try String(contentsOf: file, encoding: .utf8).split(separator: "\n") {
                let words = line.split(separator: " ")
                guard let index = words.firstIndex(of: "import"), index <= 1, !line.hasPrefix(" ") else { continue }
                let name = String(words[words.count - 1].prefix { $0 != "." })
                let allowed = Self.allowedImports[module, default: []].union(Self.systemModules)
                #expect(allowed.contains(name), "\(module)/\(file.lastPathComponent) imports \(name)")
            }
        }
    }

    @Test func `every Swift module of Sources is in the table, and there are at most 17`() throws {
        let folders = try FileManager.default.contentsOfDirectory(atPath: Self.root.appending(path: "Sources").path)
            .filter { try !Self.files(in: "Sources/\($0)").isEmpty }

        #expect(folders.count <= 17)
        #expect(Set(folders) == Set(Self.allowedImports.keys))
    }

    @Test func `no source file is longer than 400 lines`() throws {
        for file in try Self.files(in: "Sources") {
            let lines = try String(contentsOf: file, encoding: .utf8).split(
                separator: "\n",
                omittingEmptySubsequences: false
            )
            #expect(lines.count <= 401, "\(file.lastPathComponent) has \(lines.count) lines")
        }
    }

    @Test func `nothing is public`() throws {
        for file in try Self.files(in: "Sources") {
            let text = try String(contentsOf: file, encoding: .utf8)
            // Comments and enum cases may contain the word.
            let hasPublicDeclaration = text.contains(#/(?m)^[ \t]*(@\w+\s+)*public\s/#)
            #expect(!hasPublicDeclaration, "\(file.lastPathComponent) has a public declaration")
        }
    }
}
