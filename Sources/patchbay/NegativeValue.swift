import Model

/// A negative number behind an option, which the parser takes for an option of its own and calls a missing value.
enum NegativeValue {
    /// - Throws: `Complaint`.
    static func refuse(_ arguments: [String], command: String) throws(Complaint) {
        // It has a parser of its own.
        guard arguments.first != "iproxy" else { return }
        let words = Array(arguments.prefix { $0 != "--" })
        for (option, value) in zip(words, words.dropFirst()) where option.hasPrefix("-") && !option.contains("=") {
            guard value.hasPrefix("-"), value.dropFirst().first?.isNumber == true else { continue }
            throw .usage(
                "\(Untrusted(option)) takes no negative value such as \"\(Untrusted(value))\"",
                try: "\(command) --help"
            )
        }
    }
}
