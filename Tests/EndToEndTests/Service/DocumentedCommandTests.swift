import Foundation
import TestSupport
import Testing

/// The commands of README and of `docs/` work as written.
@Suite(.scratchFolder) struct DocumentedCommandTests {
    private let scratch = ScratchFolder.current
    private static let root = String(
        #filePath.dropLast("/Tests/EndToEndTests/Service/DocumentedCommandTests.swift".count)
    )

    private static func text(of document: String) throws -> String {
        try String(contentsOf: URL(filePath: "\(root)/\(document)"), encoding: .utf8)
    }

    @Test(.needs(.root, .namespaces, .avahi, .usbmuxd, .python), .timeLimit(.minutes(4)))
    func `every command in a shell block of the documents works as written, or has a reason not to be run`()
        async throws
    {
        let script = "\(Self.root)/Tests/EndToEndTests/Service/documents"
        let folder = try Executable.built("patchbayd").dropLast("/patchbayd".count)

        let documents = try await Program(script, in: scratch, environment: ["BUILT": String(folder)])

        let status = try await documents.exitStatus(within: .seconds(200))
        for await _ in documents.transcript.elements() {}
        let failures = documents.output.filter { !$0.hasPrefix("ran ") && !$0.hasPrefix("skipped ") }
        #expect(status == .exited(0), "\(failures.joined(separator: "\n"))\n\(documents.log)")
        #expect(documents.output.count { $0.hasPrefix("ran ") } >= 40)
    }

    @Test(.needs(.root, .systemd))
    func `the commands of the installation from source install, enable and allow the broker in an empty root`()
        async throws
    {
        let commands = try #require(
            try Self.text(of: "docs/install.md").firstMatch(of: /```sh\n(?<lines>make build[^`]*)```/)?.lines
        )
        let root = try scratch.makeFolder("root")
        try scratch.makeFolder("root/etc")
        try scratch.write("root:x:0:0::/root:/bin/sh\ndev:x:1000:1000::/home/dev:/bin/sh\n", to: "root/etc/passwd")
        try scratch.write("root:x:0:\ndev:x:1000:\n", to: "root/etc/group")
        let built = try String(Executable.built("patchbayd").dropLast("/patchbayd".count))
        // Each command acts on an empty root instead of on this machine. Nothing is compiled or downloaded.
        let redirections = [
            ("sudo ", ""), ("\"$USER\"", "dev"), ("make build", "make --dry-run build"),
            ("make install", "make install DESTDIR=\(root) BUILT=\(built)"),
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
        #expect(isRedirected.count == redirections.count, "install.md no longer has all of these commands")
        let line = try await Program.run(
            "make",
            ["-C", Self.root, "--dry-run", "install", "BUILT=\(built)"],
            in: scratch
        )
        let start = "systemd-sysusers && systemctl daemon-reload && systemctl enable --now patchbayd"
        #expect(line.contains { $0.contains(start) })
        let group = try String(contentsOf: URL(filePath: "\(root)/etc/group"), encoding: .utf8)
        #expect(group.contains(/(?m)^patchbay:x:[0-9]+:dev$/))
        for unit in ["sockets.target.wants/patchbayd.socket", "multi-user.target.wants/patchbayd.service"] {
            let link = "\(root)/etc/systemd/system/\(unit)"
            #expect(try FileManager.default.destinationOfSymbolicLink(atPath: link).hasPrefix("/usr/local/lib/"))
        }
    }

    /// The subcommands and options of the commands, by their help texts.
    private final class Helps {
        private struct Help {
            var subcommands: Set<Substring> = []
            var options: Set<Substring> = []
        }

        private let scratch: ScratchFolder
        private var helps: [[String]: Help] = [:]

        init(in scratch: ScratchFolder) { self.scratch = scratch }

        private func help(of command: [String]) async throws -> Help {
            if let help = helps[command] { return help }
            let arguments = Array(command.dropFirst()) + ["--help"]
            let said = try await Program.run(Executable.built(command[0]), arguments, in: scratch)
            var help = Help()
            // The examples before are checked by `CommandTests`.
            for line in said.drop(while: { !$0.uppercased().hasPrefix("USAGE:") }) {
                // An alias follows its command and a comma.
                if let names = line.firstMatch(of: /^  (?<all>[a-z][a-z-]*(?:, [a-z-]+)*)(?: \(default\))?(?: |$)/)?.all
                {
                    help.subcommands.formUnion(names.split(separator: ", "))
                }
                help.options.formUnion(line.matches(of: /(?:^|[\s\[|(])(?<name>--?[A-Za-z][\w-]*)/).map(\.name))
            }
            helps[command] = help
            return help
        }

        /// Returns a sentence about the first word of a command line that does not exist; nil if all exist.
        func problem(of line: String) async throws -> String? {
            // Words behind `--` belong to another program.
            let words = line.split(separator: " ").map(String.init).prefix { $0 != "--" }
            var command = [words[0]]
            for word in words.dropFirst().prefix(3) where word.first?.isLetter == true {
                if try await help(of: command).subcommands.contains(word[...]) {
                    command.append(word)
                } else if command == ["patchbay"] {
                    return "\(word) is no command"
                } else {
                    break
                }
            }
            var options = try await help(of: command).options
            // A group without a word is its command `list`.
            if try await help(of: command).subcommands.contains("list") {
                options.formUnion(try await help(of: command + ["list"]).options)
            }
            let unknown = words.first {
                $0.hasPrefix("-") && $0.count > 1 && !options.contains($0.prefix { $0 != "=" })
            }
            return unknown.map { "\(command.joined(separator: " ")) has no option \($0)" }
        }
    }

    @Test func `every command and option in the documents exists`() async throws {
        let folder = try FileManager.default.contentsOfDirectory(atPath: "\(Self.root)/docs")
        let documents = ["README.md"] + folder.filter { $0.hasSuffix(".md") }.map { "docs/\($0)" }
        let helps = Helps(in: scratch)
        var count = 0
        for document in documents {
            for match in try Self.text(of: document).matches(
                of: /(?m)(?:`|\| |^|\()(?<line>patchbayd? [a-z-][^`|\n#)&]*)/
            ) {
                guard !match.line.hasPrefix("patchbay help ") else { continue }
                count += 1
                let problem = try await helps.problem(of: String(match.line))
                #expect(problem == nil, "\(document): \(match.line)")
            }
        }
        #expect(count > 150)
    }

    @Test(arguments: [
        ("patchbay lst", "lst is no command"), ("patchbay list --nonsense", "patchbay list has no option --nonsense"),
        ("patchbay lease ID --forever 5m", "patchbay lease has no option --forever"),
        ("patchbay tunnels rm ID --fo", "patchbay tunnels rm has no option --fo"),
        ("patchbayd --chek-config", "patchbayd has no option --chek-config"),
        ("patchbay lease ID -- COMMAND --nonsense", nil), ("patchbay tunnels --json", nil), ("patchbay login -", nil),
        ("patchbay logs -f -p warning", nil), ("patchbay list --broker=lab", nil),
    ])
    func `a command or an option that does not exist is found`(line: String, problem: String?) async throws {
        let found = try await Helps(in: scratch).problem(of: line)
        #expect(found == problem)
    }

    @Test func `docs/cli.md has every command`() async throws {
        let document = try Self.text(of: "docs/cli.md")
        let overview = try await Program.run(Executable.built("patchbay"), ["--help"], in: scratch)
        let commands = overview.compactMap { $0.wholeMatch(of: #/  (?<name>[a-z]+)(?:, [a-z]+)* +[A-Z].*/#)?.name }
        #expect(commands.count > 20)
        for command in commands {
            #expect(document.contains("patchbay \(command)"), "docs/cli.md lacks patchbay \(command)")
        }
    }
}
