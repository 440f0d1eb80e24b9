import Foundation
import Testing

/// The folders of a module depend on each other without a cycle, so that each can be read after those that it uses.
///
/// A folder uses another one if it names a type that only the other one declares.
@Suite struct FolderGraphTests {
    private struct Folder {
        var declared: Set<String> = []
        var used: Set<String> = []
    }

    /// Returns the declared and the used types of each folder of a module.
    private static func folders(of module: String) throws -> [String: Folder] {
        var folders: [String: Folder] = [:]
        for file in try ProjectFile.swift(in: "Sources/\(module)") {
            let parts = file.path.split(separator: "/")
            let folder = parts.count > 3 ? String(parts[2]) : module
            for line in try file.lines() where !line.drop(while: { $0 == " " }).hasPrefix("//") {
                // Text in quotes names no type; what follows in an interpolation is rarely one.
                let code = line.split(separator: "\"", maxSplits: 1, omittingEmptySubsequences: false)[0]
                let words = code.split { !$0.isLetter && !$0.isNumber && $0 != "_" }
                folders[folder, default: Folder()].used.formUnion(words.map(String.init))
                guard !line.hasPrefix(" "), !line.contains("private") else { continue }
                let keyword = words.firstIndex { Self.keywords.contains(String($0)) }
                guard let keyword, keyword + 1 < words.count else { continue }
                folders[folder, default: Folder()].declared.insert(String(words[keyword + 1]))
            }
        }
        return folders
    }

    private static let keywords: Set = ["struct", "class", "enum", "actor", "protocol", "typealias"]

    /// Returns the folders that each folder uses.
    private static func graph(of module: String) throws -> [String: Set<String>] {
        let folders = try folders(of: module)
        let owners = folders.reduce(into: [String: [String]]()) { owners, folder in
            for name in folder.value.declared { owners[name, default: []].append(folder.key) }
        }
        return folders.mapValues { folder in
            Set(folder.used.compactMap { owners[$0]?.count == 1 ? owners[$0]?.first : nil })
        }
    }

    @Test(arguments: ["Agents", "Apps"]) func `the folders of a module have no cycle`(module: String) throws {
        var rest = try Self.graph(of: module)
        for folder in rest.keys { rest[folder]?.remove(folder) }
        while let next = rest.filter({ $0.value.isDisjoint(with: rest.keys) }).keys.min() {
            print("\(module)/\(next) uses \(rest[next]?.sorted().joined(separator: ", ") ?? "")")
            rest[next] = nil
        }

        #expect(rest.isEmpty, "a cycle is among \(rest.mapValues { $0.sorted() })")
    }
}
