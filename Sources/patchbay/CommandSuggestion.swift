import ArgumentParser
import Model

/// Detects mistyped commands before parsing, because ArgumentParser reports them only as unexpected arguments.
enum CommandSuggestion {
    /// Checks the command words of a command line.
    ///
    /// - Throws: `CLIError` for an unknown command.
    static func check(_ arguments: [String], against root: any ParsableCommand.Type) throws(CLIError) {
        var command = root
        var path = root._commandName
        let words = arguments.first == "help" ? arguments.dropFirst() : arguments[...]
        for (index, word) in zip(words.indices, words) {
            guard !word.hasPrefix("-"), !command.configuration.subcommands.isEmpty else { return }
            guard let next = subcommand(word, of: command) else {
                // `patchbay debug ID` lists the states of this app. It has no second word.
                let following = words.dropFirst(index + 1 - words.startIndex).first
                if command == DebugCommand.self, following?.hasPrefix("-") ?? true { return }
                let names = command.configuration.subcommands.map { $0._commandName }
                let other = command == root ? other(for: word, followedBy: following) : nil
                let isID = names.contains("show") && word.count > 1 && word.dropFirst().allSatisfy(\.isNumber)
                throw CLIError.usage(
                    "there is no command \"\(SanitizedText(Secret.redacted(word)))\" in \(path)",
                    try: other ?? (isID ? "\(path) show \(word.shellQuoted)" : nil)
                        ?? nearest(to: word, among: names).map { "\(path) \($0)" } ?? "\(path) --help"
                )
            }
            command = next
            path += " \(next._commandName)"
        }
    }

    /// The commands for words of other programs, which resemble a command by chance or not at all.
    private static let others = [
        "adb": "patchbay devices", "ps": "patchbay list", "info": "patchbay show ID", "token": "patchbay secret set ID",
        "start": "sudo systemctl start patchbayd", "stop": "sudo systemctl stop patchbayd",
        "restart": "sudo systemctl restart patchbayd", "delete": "patchbay rm ID", "remove": "patchbay rm ID",
    ]

    /// Returns the command for a word of another program, with the next word of the command line as its ID.
    private static func other(for word: String, followedBy next: String?) -> String? {
        guard let command = others[word], let next, !next.hasPrefix("-"), command.hasSuffix(" ID") else {
            return others[word]
        }
        return command.dropLast(2) + next.shellQuoted
    }

    /// Returns the longest prefix of the command line that names a command, such as `patchbay tunnels rm`.
    static func command(in arguments: [String], below root: any ParsableCommand.Type) -> String {
        path(in: arguments, below: root).map { $0._commandName }.joined(separator: " ")
    }

    /// Returns the command that a command line names.
    static func type(in arguments: [String], below root: any ParsableCommand.Type) -> any ParsableCommand.Type {
        path(in: arguments, below: root).last ?? root
    }

    private static func path(
        in arguments: [String],
        below root: any ParsableCommand.Type
    ) -> [any ParsableCommand.Type] {
        var path = [root]
        for word in arguments {
            guard let next = subcommand(word, of: path[path.count - 1]) else { break }
            path.append(next)
        }
        return path
    }

    /// Returns the best suggestion: edit distance 1, then prefix match, then edit distance 2.
    static func nearest(to word: String, among names: [String]) -> String? {
        let closest = names.map { ($0, SimilarNameFinder.distance(word, $0)) }.min { $0.1 < $1.1 }
        // A short word with two slips and another first letter is another word.
        let near = closest.flatMap { name, distance in
            let limit = word.count > 4 || word.first == name.first ? min(2, word.count / 2 + 1) : 1
            return distance <= limit && distance < name.count ? name : nil
        }
        if closest?.1 == 1, let near { return near }
        return (word.isEmpty ? nil : names.first { $0.hasPrefix(word) }) ?? near
    }

    /// Returns `command` with the known ID that differs from a text in the case of letters only.
    static func respelled(_ id: String, for command: String, among ids: [String]) -> String? {
        let found = ids.filter { $0 != id && $0.lowercased() == id.lowercased() }
        return found.count == 1 ? "\(command) \(found[0])" : nil
    }

    private static func subcommand(
        _ word: String,
        of command: any ParsableCommand.Type
    ) -> (any ParsableCommand.Type)? {
        command.configuration.subcommands.first { $0._commandName == word || $0.configuration.aliases.contains(word) }
    }
}

/// Rejects negative numbers as option values, which ArgumentParser reports as a missing value.
enum NegativeArgumentCheck {
    /// - Throws: `CLIError` for the first option that is followed by a negative number.
    static func refuse(_ arguments: [String], command: String) throws(CLIError) {
        // `iproxy` has its own parser.
        guard arguments.first != "iproxy" else { return }
        let words = Array(arguments.prefix { $0 != "--" })
        for (option, value) in zip(words, words.dropFirst()) where option.hasPrefix("-") && !option.contains("=") {
            guard value.hasPrefix("-"), value.dropFirst().first?.isNumber == true else { continue }
            throw .usage(
                "\(SanitizedText(option)) does not accept the negative value \"\(SanitizedText(value))\"",
                try: "\(command) --help"
            )
        }
    }
}
