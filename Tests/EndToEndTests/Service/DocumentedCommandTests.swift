import Foundation
import TestSupport
import Testing

/// The commands of README and of `docs/` work as written.
@Suite struct DocumentedCommandTests {
    private static let root = String(
        #filePath.dropLast("/Tests/EndToEndTests/Service/DocumentedCommandTests.swift".count)
    )

    private static func text(of document: String) throws -> String {
        try String(contentsOf: URL(filePath: "\(root)/\(document)"), encoding: .utf8)
    }

    @Test(.needs(.usbmuxd, .python))
    func `the commands of README's quick start work with a phone attached`() async throws {
        try await withScratchFolder { scratch in
            let rig = try await UsbmuxdFixture(["00008030-001A2B3C4D5E6F70"], in: scratch)
            let broker = try await RunningBroker(in: scratch, phones: rig)
            try await eventually("the phone is listed") {
                try await broker.ask("devices").joined().contains("00008030-001A2B3C4D5E6F70")
            }
            let lines = try Self.text(of: "README.md").split(separator: "\n").filter { $0.hasPrefix("patchbay ") }
            #expect(lines.count == 3)
            for line in lines {
                let command = try await broker.start(line.split(separator: " ").dropFirst().map(String.init))
                let status = try await command.exitStatus()
                #expect(status == .exited(0), "\(command.log)")
            }
        }
    }

    @Test(.needs(.root, .systemd))
    func `the commands of README's installation install, enable and allow the broker in an empty root`() async throws {
        let commands = try #require(try Self.text(of: "README.md").firstMatch(of: /```sh\n(?<lines>[^`]*)```/)?.lines)
        try await withScratchFolder { scratch in
            let root = try scratch.makeFolder("root")
            try scratch.makeFolder("root/etc")
            try scratch.write("root:x:0:0::/root:/bin/sh\ndev:x:1000:1000::/home/dev:/bin/sh\n", to: "root/etc/passwd")
            try scratch.write("root:x:0:\ndev:x:1000:\n", to: "root/etc/group")
            let built = try String(Executable.built("patchbayd").dropLast("/patchbayd".count))
            // Each command acts on an empty root instead of on this machine. Nothing is compiled or downloaded.
            let redirections = [
                ("sudo ", ""), ("\"$USER\"", "dev"), ("make setup", "make --dry-run setup"),
                ("make build", "make --dry-run build"), ("make install", "make install DESTDIR=\(root) BUILT=\(built)"),
                ("systemd-sysusers", "systemd-sysusers --root=\(root)"), ("systemctl daemon-reload", "true"),
                ("systemctl enable --now", "systemctl --root=\(root) enable"),
                ("usermod ", "usermod --prefix \(root) "),
            ]
            var isRedirected = Set<String>()
            for line in commands.split(separator: "\n") {
                var command = String(line)
                for (original, replacement) in redirections where command.contains(original) {
                    command.replace(original, with: replacement)
                    isRedirected.insert(original)
                }
                try await Program.run("sh", ["-c", "cd \(Self.root) && \(command)"], in: scratch)
            }
            #expect(isRedirected.count == redirections.count, "README no longer has all of these commands")
            let group = try String(contentsOf: URL(filePath: "\(root)/etc/group"), encoding: .utf8)
            #expect(group.contains(/(?m)^patchbay:x:[0-9]+:dev$/))
            for unit in ["sockets.target.wants/patchbayd.socket", "multi-user.target.wants/patchbayd.service"] {
                let link = "\(root)/etc/systemd/system/\(unit)"
                #expect(try FileManager.default.destinationOfSymbolicLink(atPath: link).hasPrefix("/usr/local/lib/"))
            }
        }
    }

    @Test func `every command and option in the documents exists`() async throws {
        let folder = try FileManager.default.contentsOfDirectory(atPath: "\(Self.root)/docs")
        let documents = ["README.md"] + folder.filter { $0.hasSuffix(".md") }.map { "docs/\($0)" }
        try await withScratchFolder { scratch in
            var help: [[String]: String] = [:]
            func helpText(of command: [String]) async throws -> String {
                if let text = help[command] { return text }
                let said = try await Program.run(Executable.built("patchbay"), command + ["--help"], in: scratch)
                help[command] = said.joined(separator: "\n")
                return said.joined(separator: "\n")
            }
            for document in documents {
                for match in try Self.text(of: document).matches(of: /(?m)(?:`|\| |^)patchbay (?<words>[a-z][^`|\n#]*)/)
                {
                    let words = match.words.split(separator: " ").map(String.init)
                    guard words[0] != "help" else { continue }
                    let overview = try await helpText(of: [])
                    // An alias follows its command and a comma.
                    let isCommand = ["\n  \(words[0]) ", "\n  \(words[0]),", ", \(words[0]) "].contains {
                        overview.contains($0)
                    }
                    #expect(isCommand, "\(document): patchbay \(match.words)")
                    var command = [words[0]]
                    var text = try await helpText(of: command)
                    let subcommand = words.count > 1 && words[1].first?.isLetter == true ? words[1] : "list"
                    if text.contains("\n  \(subcommand) ") || text.contains("\n  \(subcommand), ") {
                        command.append(subcommand)
                        text = try await helpText(of: command)
                    }
                    for option in words where option.hasPrefix("--") {
                        #expect(text.contains(option), "\(document): patchbay \(match.words)")
                    }
                }
            }
        }
    }

    @Test func `docs/cli.md has every command`() async throws {
        let document = try Self.text(of: "docs/cli.md")
        try await withScratchFolder { scratch in
            let overview = try await Program.run(Executable.built("patchbay"), ["--help"], in: scratch)
            let commands = overview.compactMap { $0.wholeMatch(of: #/  (?<name>[a-z]+)(?:, [a-z]+)* +[A-Z].*/#)?.name }
            #expect(commands.count > 20)
            for command in commands {
                #expect(document.contains("patchbay \(command)"), "docs/cli.md lacks patchbay \(command)")
            }
        }
    }
}
