import FoundationEssentials
import Glibc
import Testing

@testable import patchbay

@Suite struct ConfigurationFileTests {
    @Test func `the file of a project is in the root of its repository, or beside an existing one`() throws {
        try withFolder { folder in
            let inner = "\(folder)/app/src"
            try FileManager.default.createDirectory(atPath: inner, withIntermediateDirectories: true)
            try FileManager.default.createDirectory(atPath: "\(folder)/.git", withIntermediateDirectories: true)
            func file(_ client: MCPClientKind) throws -> String {
                try ConfigurationTarget(client, isProject: true, name: "x", folder: inner, environment: [:]).file
            }
            #expect(try file(.claude) == "\(folder)/.mcp.json")
            #expect(try file(.codex) == "\(folder)/.codex/config.toml")
            try Data("{}".utf8).write(to: URL(filePath: "\(folder)/app/.mcp.json"))
            #expect(try file(.claude) == "\(folder)/app/.mcp.json")
        }
    }

    @Test func `a file is replaced with its mode, through a symbolic link`() throws {
        try withFolder { folder in
            let (real, link) = ("\(folder)/real.json", "\(folder)/link.json")
            try Data("{}".utf8).write(to: URL(filePath: real))
            try FileManager.default.setAttributes([.posixPermissions: 0o640], ofItemAtPath: real)
            try FileManager.default.createSymbolicLink(atPath: link, withDestinationPath: real)
            let file = ConfigurationFile(path: link)
            try file.replace(Array("{}".utf8), with: Array("[]".utf8), mode: 0o600)
            #expect(try file.content() == Array("[]".utf8))
            #expect(try FileManager.default.destinationOfSymbolicLink(atPath: link) == real)
            let mode = try FileManager.default.attributesOfItem(atPath: real)[.posixPermissions] as? Int
            #expect(mode == 0o640)
            #expect(try FileManager.default.contentsOfDirectory(atPath: folder).sorted() == ["link.json", "real.json"])
        }
    }

    @Test func `a file that another program has changed meanwhile is not replaced`() throws {
        try withFolder { folder in
            try Data("new".utf8).write(to: URL(filePath: "\(folder)/a.json"))
            let file = ConfigurationFile(path: "\(folder)/a.json")
            let error = #expect(throws: CLIError.self) {
                try file.replace(Array("old".utf8), with: Array("ours".utf8), mode: 0o600)
            }
            #expect(error?.status == .temporary)
            #expect(try file.content() == Array("new".utf8))
        }
    }

    @Test(arguments: [".mcp.json", ".cursor"]) func `a link of a repository to a file outside of it is refused`(
        link: String
    ) throws {
        try withFolder { folder in
            let (home, project) = ("\(folder)/home", "\(folder)/repository")
            for folder in [home, "\(project)/.git", "\(project)/app"] {
                try FileManager.default.createDirectory(atPath: folder, withIntermediateDirectories: true)
            }
            let target = link == ".cursor" ? home : "\(home)/.claude.json"
            try Data("{}".utf8).write(to: URL(filePath: "\(home)/.claude.json"))
            let path = "\(project)/\(link)"
            try FileManager.default.createSymbolicLink(atPath: path, withDestinationPath: target)
            let client = link == ".cursor" ? MCPClientKind.cursor : .claude
            func file() throws -> String {
                let environment = ["HOME": "\(folder)/nowhere"]
                return try ConfigurationTarget(
                    client,
                    isProject: true,
                    name: "x",
                    folder: "\(project)/app",
                    environment: environment
                ).file
            }

            let error = #expect(throws: CLIError.self) { try file() }
            #expect(error?.status == .configuration)
            #expect(error?.message.contains("leads out of the project") == true)

            // A link to another place in the repository is the wish of its author.
            try FileManager.default.removeItem(atPath: path)
            let inner = "\(project)/shared\(link == ".cursor" ? "" : ".json")"
            if link == ".cursor" {
                try FileManager.default.createDirectory(atPath: inner, withIntermediateDirectories: true)
            } else {
                try Data("{}".utf8).write(to: URL(filePath: inner))
            }
            try FileManager.default.createSymbolicLink(atPath: path, withDestinationPath: inner)
            #expect(try file().hasPrefix(project))
        }
    }

    @Test func `the file of a project is never the user's own file`() throws {
        try withFolder { home in
            let (project, shared) = ("\(home)/src/app", "\(home)/src/repository")
            for folder in ["\(home)/.cursor", project, "\(shared)/.git", "\(shared)/inner"] {
                try FileManager.default.createDirectory(atPath: folder, withIntermediateDirectories: true)
            }
            try Data("{}".utf8).write(to: URL(filePath: "\(home)/.cursor/mcp.json"))
            func file(_ folder: String) throws -> String {
                let environment = ["HOME": home]
                return try ConfigurationTarget(
                    .cursor,
                    isProject: true,
                    name: "x",
                    folder: folder,
                    environment: environment
                ).file
            }
            #expect(try file(project) == "\(project)/.cursor/mcp.json")
            #expect(try file("\(shared)/inner") == "\(shared)/.cursor/mcp.json")
            // A home folder under git is no project either.
            try FileManager.default.createDirectory(atPath: "\(home)/.git", withIntermediateDirectories: true)
            #expect(try file(project) == "\(project)/.cursor/mcp.json")
            let error = #expect(throws: CLIError.self) { try file(home) }
            #expect(error?.status == .usage)
        }
    }

    @Test func `changes at the same time are all kept`() async throws {
        let folder = "\(FileManager.default.temporaryDirectory.path)/patchbay-test-\(UUID().uuidString)"
        defer { try? FileManager.default.removeItem(atPath: folder) }
        let path = "\(folder)/mcp.json"
        try await withThrowingTaskGroup(of: Void.self) { group in
            for number in UInt8(0)..<16 {
                group.addTask {
                    let file = ConfigurationFile(path: path)
                    try file.locked {
                        let old = try file.content()
                        try file.replace(old, with: (old ?? []) + [number], mode: 0o600)
                    }
                }
            }
            try await group.waitForAll()
        }
        #expect(try ConfigurationFile(path: path).content()?.sorted() == Array(0..<16))
    }

    @Test func `a symbolic link without a file is not replaced`() throws {
        try withFolder { folder in
            let link = "\(folder)/link.json"
            try FileManager.default.createSymbolicLink(atPath: link, withDestinationPath: "dotfiles/mcp.json")
            let error = #expect(throws: CLIError.self) { try ConfigurationFile(path: link).content() }
            #expect(error?.message.contains("dotfiles/mcp.json") == true)
        }
    }

    @Test func `a read-only file and a hard link are refused and stay as they are`() throws {
        try withFolder { folder in
            let (path, other) = ("\(folder)/a.json", "\(folder)/b.json")
            try Data("{}".utf8).write(to: URL(filePath: path))
            let file = ConfigurationFile(path: path)
            func message() throws -> String? {
                let error = #expect(throws: CLIError.self) {
                    try file.replace(Array("{}".utf8), with: Array("[]".utf8), mode: 0o600)
                }
                #expect(try file.content() == Array("{}".utf8))
                return error?.message
            }

            try FileManager.default.setAttributes([.posixPermissions: 0o444], ofItemAtPath: path)
            #expect(try message()?.contains("is read-only") == true)
            try FileManager.default.setAttributes([.posixPermissions: 0o644], ofItemAtPath: path)
            try FileManager.default.linkItem(atPath: path, toPath: other)
            #expect(try message()?.contains("is a hard link") == true)
        }
    }

    @Test func `messages name the file behind a symbolic link`() throws {
        try withFolder { folder in
            let real = try #require(realpath(folder, nil).map { String(cString: $0) }) + "/real.json"
            try Data("{}".utf8).write(to: URL(filePath: real))
            try FileManager.default.createSymbolicLink(atPath: "\(folder)/link.json", withDestinationPath: real)
            #expect(ConfigurationFile(path: "\(folder)/link.json").name == "\(folder)/link.json -> \(real)")
            #expect(ConfigurationFile(path: real).name == real)
        }
    }

    private func withFolder(_ body: (String) throws -> Void) throws {
        let folder = "\(FileManager.default.temporaryDirectory.path)/patchbay-test-\(UUID().uuidString)"
        try FileManager.default.createDirectory(atPath: folder, withIntermediateDirectories: true)
        defer { try? FileManager.default.removeItem(atPath: folder) }
        try body(folder)
    }
}
