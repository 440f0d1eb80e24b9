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
        guard let index = words.firstIndex(where: { isOption($0) && !known.contains(name(of: $0)) }) else { return nil }
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
            // `--uses` may resemble `--user`, but does not accept a name.
            do { _ = try Patchbay.parseAsRoot(words) } catch {
                if Patchbay.message(for: error).contains("\(near) <") { return nil }
            }
            return (["patchbay"] + words.map(\.shellQuoted)).joined(separator: " ")
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
        let corrected = (["patchbay"] + words.map(\.shellQuoted)).joined(separator: " ")
        let help = "\(CommandSuggestion.command(in: arguments, below: root)) --help"
        return .usage("unknown option '\(SanitizedText(arguments[index]))'", try: words == arguments ? help : corrected)
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
