import ArgumentParser
import Model

/// Notices a mistyped command before the parser does, because the parser only calls it an unexpected argument.
enum CommandSuggestion {
    /// - Throws: `CLIError` when a word stands where a command belongs and is none.
    static func check(_ arguments: [String], against root: any ParsableCommand.Type) throws(CLIError) {
        var command = root
        var path = root._commandName
        for word in arguments.first == "help" ? arguments.dropFirst() : arguments[...] {
            guard !word.hasPrefix("-"), !command.configuration.subcommands.isEmpty else { return }
            guard let next = subcommand(word, of: command) else {
                let names = command.configuration.subcommands.map { $0._commandName }
                throw CLIError(
                    status: .usage,
                    message: "there is no command \"\(SanitizedText(Secret.redacted(word)))\" in \(path)",
                    remedy: nearest(to: word, among: names).map { "\(path) \($0)" } ?? "\(path) --help"
                )
            }
            command = next
            path += " \(next._commandName)"
        }
    }

    /// The command that a command line names, as far as it names one: `patchbay tunnels rm`.
    static func command(in arguments: [String], below root: any ParsableCommand.Type) -> String {
        var command = root
        var path = root._commandName
        for word in arguments {
            guard let next = subcommand(word, of: command) else { break }
            command = next
            path += " \(next._commandName)"
        }
        return path
    }

    /// The closest name that is one slip of the finger away, that the word begins, or that is two slips away.
    static func nearest(to word: String, among names: [String]) -> String? {
        let closest = names.map { ($0, NearNames.distance(word, $0)) }.min { $0.1 < $1.1 }
        let near = closest.flatMap { $1 <= min(2, word.count / 2 + 1) && $1 < $0.count ? $0 : nil }
        if closest?.1 == 1, let near { return near }
        return (word.isEmpty ? nil : names.first { $0.hasPrefix(word) }) ?? near
    }

    private static func subcommand(
        _ word: String,
        of command: any ParsableCommand.Type
    ) -> (any ParsableCommand.Type)? {
        command.configuration.subcommands.first { $0._commandName == word || $0.configuration.aliases.contains(word) }
    }
}

/// A negative number behind an option, which the parser takes for an option of its own and calls a missing value.
enum NegativeArgumentCheck {
    /// - Throws: `CLIError`.
    static func refuse(_ arguments: [String], command: String) throws(CLIError) {
        // It has a parser of its own.
        guard arguments.first != "iproxy" else { return }
        let words = Array(arguments.prefix { $0 != "--" })
        for (option, value) in zip(words, words.dropFirst()) where option.hasPrefix("-") && !option.contains("=") {
            guard value.hasPrefix("-"), value.dropFirst().first?.isNumber == true else { continue }
            throw .usage(
                "\(SanitizedText(option)) takes no negative value such as \"\(SanitizedText(value))\"",
                try: "\(command) --help"
            )
        }
    }
}
