import Model

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
