import ArgumentParser
import Model

/// An option that a command does not have. ArgumentParser can report the value after it instead, as a wrong argument.
enum UnknownOption {
    /// Returns the error of the first option that the command does not have; nil if it has all of them.
    static func error(in arguments: [String], below root: any ParsableCommand.Type) -> CLIError? {
        let words = Array(arguments.prefix { $0 != "--" })
        // `iproxy` has its own parser.
        guard words.first != "iproxy" else { return nil }
        let command = CommandSuggestion.type(in: words, below: root)
        // Without a name of a subcommand, the options are those of the default one.
        let known = options(of: command).union(command.configuration.defaultSubcommand.map { options(of: $0) } ?? [])
        guard let index = words.firstIndex(where: { isOption($0) && !known.contains(name(of: $0)) }) else {
            return wrongValue(in: words, of: command)
        }
        if !words[index].hasPrefix("--") { return short(at: index, of: arguments, known, below: root) }
        let unknown = name(of: words[index])
        let state = String(unknown.dropFirst(2))
        if command == ListCommand.self, Endpoint.State(rawValue: state) != nil {
            return .usage("unknown option '\(SanitizedText(unknown))'", try: "patchbay list --state \(state)")
        }
        let near = unknown.count > 4 ? CommandSuggestion.nearest(to: unknown, among: known.sorted()) : nil
        let corrected: String? = near.flatMap { near in
            var words = arguments
            words[index] = near + words[index].dropFirst(unknown.count)
            return Self.command(of: words)
        }
        return .usage(
            "unknown option '\(SanitizedText(unknown))'",
            try: corrected ?? "\(CommandSuggestion.command(in: words, below: root)) --help"
        )
    }

    /// Returns the error of an option with one letter. The long option that begins with the letter was probably meant, or
    /// `--json` by `-o json`.
    private static func short(
        at index: Int,
        of arguments: [String],
        _ known: Set<String>,
        below root: any ParsableCommand.Type
    ) -> CLIError {
        let (letter, next) = (arguments[index].dropFirst(), arguments.dropFirst(index + 1).first)
        let long = known.filter { $0.hasPrefix("--\(letter)") }
        var words = arguments
        if let next, known.contains("--\(next)") {
            words[index...(index + 1)] = ["--\(next)"]
        } else if let only = long.first, long.count == 1 {
            words[index] = only
        }
        let help = "\(CommandSuggestion.command(in: arguments, below: root)) --help"
        let corrected = words == arguments ? nil : command(of: words)
        return .usage("unknown option '\(SanitizedText(arguments[index]))'", try: corrected ?? help)
    }

    /// Returns the command line to type; nil if the parser rejects it. `--uses` may resemble `--user`, but does not accept
    /// a name.
    private static func command(of words: [String]) -> String? {
        do { _ = try Patchbay.parseAsRoot(words) } catch {
            guard Patchbay.exitCode(for: error) == .success else { return nil }
        }
        return (["patchbay"] + words.map(\.shellQuoted)).joined(separator: " ")
    }

    /// Returns the error of a value that stands in the wrong place, or under another name.
    private static func wrongValue(
        in words: [String],
        of command: any ParsableCommand.Type
    ) -> CLIError? {
        if command == ListCommand.self, words.count == 2, let state = Endpoint.State(rawValue: words[1]) {
            return .usage("unexpected argument '\(state.rawValue)'", try: "patchbay list --state \(state.rawValue)")
        }
        let isClient = command == MCPInstallCommand.self || command == MCPUninstallCommand.self
        guard isClient, words.count > 2, MCPClientKind(rawValue: words[2]) == nil,
            let client = MCPClientKind(product: words[2])
        else { return nil }
        let clients = MCPClientKind.allCases.map(\.rawValue).joined(separator: ", ")
        return .usage(
            "there is no client \"\(SanitizedText(words[2]))\"; the clients are \(clients)",
            try: self.command(of: words[..<2] + [client.rawValue] + words[3...])
        )
    }

    /// True for a long option, and for one with one letter. A number is a value.
    private static func isOption(_ word: String) -> Bool {
        word.hasPrefix("--") || (word.count == 2 && word.first == "-" && word.last?.isLetter == true)
    }

    private static func name(of word: String) -> String { String(word.prefix { $0 != "=" }) }

    /// The options of a command, from its help.
    static func options(of command: any ParsableCommand.Type) -> Set<String> {
        let help = Patchbay.helpMessage(for: command, includeHidden: true, columns: 200)
        let lines = help.split(separator: "\n").filter { $0.hasPrefix("  -") }
        let words = lines.flatMap { $0.split { " ,/".contains($0) } }
        return Set(
            words.filter { $0.hasPrefix("-") }.map { String($0.prefix { $0 != "=" }) } + ["--help", "--version"]
        )
    }
}
