import Foundation
import TestSupport
import Testing

/// The manual pages say what `--help` and the example configuration say.
@Suite(.needs(.python, .manual), .scratchFolder) struct ManualTests {
    private let scratch = ScratchFolder.current
    private static let root = String(#filePath.dropLast("/Tests/EndToEndTests/Service/ManualTests.swift".count))

    /// A command in the output of `--experimental-dump-help`.
    private struct Command: Decodable {
        struct Argument: Decodable {
            struct Name: Decodable {
                let kind: String
                let name: String
            }

            let kind: String
            let names: [Name]?
            let valueName: String?
            let shouldDisplay: Bool
        }

        let commandName: String
        let shouldDisplay: Bool
        let arguments: [Argument]?
        let subcommands: [Command]?

        /// The words of every visible command, and the spelling of its arguments.
        func all(below words: [String] = []) -> [(words: [String], arguments: [String])] {
            let path = words + [commandName]
            let own = (arguments ?? []).filter(\.shouldDisplay).compactMap { argument in
                guard let names = argument.names else { return argument.valueName }
                return names.map { ($0.kind == "short" ? "-" : "--") + $0.name }.joined(separator: ", ")
            }
            let children = (subcommands ?? []).filter { $0.shouldDisplay && $0.commandName != "help" }
            return [(path, own)] + children.flatMap { $0.all(below: path) }
        }
    }

    private struct Help: Decodable { let command: Command }

    /// Writes the three pages and returns their folder.
    private func write(in scratch: ScratchFolder) async throws -> String {
        let built = String(try Executable.built("patchbay").dropLast("/patchbay".count))
        try await Program.run("python3", ["\(Self.root)/packaging/manual", built, scratch.file("man")], in: scratch)
        return scratch.file("man")
    }

    /// The page as text: without fonts, and with plain hyphens.
    private func page(_ path: String) throws -> String {
        try String(contentsOf: URL(filePath: path), encoding: .utf8)
            .replacing(/\\f[BIR]/, with: "").replacing("\\-", with: "-").replacing("\\(aq", with: "'")
    }

    @Test(arguments: [("patchbay", 1), ("patchbayd", 8)])
    func `a page has every command and every option of its program`(name: String, section: Int) async throws {
        let text = try await page("\(write(in: scratch))/man\(section)/\(name).\(section)")
        let dump = try await Program.run(Executable.built(name), ["--experimental-dump-help"], in: scratch)
        let help = try JSONDecoder().decode(Help.self, from: Data(dump.joined(separator: "\n").utf8))
        let commands = help.command.all()
        #expect(commands.contains { $0.words.last == name && $0.arguments.contains("-h, --help") })
        for command in commands {
            let title = command.words.joined(separator: " ")
            let sections = text.components(separatedBy: "\n.SS \"\(title)\"\n")
            // The root's own options are in the section OPTIONS.
            let part = command.words.count == 1 ? text : sections.last ?? ""
            #expect(command.words.count == 1 || sections.count == 2, "the page lacks \(title)")
            let body = command.words.count == 1 ? part : part.components(separatedBy: "\n.S")[0]
            for argument in command.arguments {
                #expect(body.contains("\n\(argument)"), "the section of \(title) lacks \(argument)")
            }
        }
    }

    @Test func `patchbay.toml(5) has every table and key of the example configuration`() async throws {
        let text = try await page("\(write(in: scratch))/man5/patchbay.toml.5")
        let example = try String(
            contentsOf: URL(filePath: "\(Self.root)/config/patchbay.example.toml"),
            encoding: .utf8
        )
        let tables = example.matches(of: /(?m)^(?:# )?(\[\[?[a-z]+\]?\])$/).map { String($0.1) }
        #expect(tables.count >= 8)
        for table in tables { #expect(text.contains("\n.SS \"\(table)\"\n"), "the page lacks \(table)") }
        let keys = example.matches(of: #/(?m)^(?:# )?([a-z_]+) = /#).map { String($0.1) }
        for key in keys { #expect(text.contains("\n.TP\n\(key)\n"), "the page lacks \(key)") }
    }

    @Test func `groff and mandoc find nothing to report, and apropos finds a description`() async throws {
        let folder = try await write(in: scratch)
        for path in ["man1/patchbay.1", "man8/patchbayd.8", "man5/patchbay.toml.5"].map({ "\(folder)/\($0)" }) {
            let script = """
                man -l --warnings "$1" 2>&1 >/dev/null; mandoc -T lint "$1" || true; lexgrog "$1" >/dev/null || echo none
                """
            let reports = try await Program.run("sh", ["-c", script, "sh", path], in: scratch)
            #expect(reports.isEmpty, "\(path)")
        }
    }
}
