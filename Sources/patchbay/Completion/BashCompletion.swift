import ArgumentParser

/// Adds the names of the commands after `patchbay help` to the completion script for bash, which ArgumentParser leaves out.
enum BashCompletion {
    private static let function = "_patchbay_help() {\n"

    /// Returns any other text unchanged.
    static func completed(_ text: String) -> String {
        guard let start = text.firstRange(of: function),
            let end = text[start.upperBound...].firstRange(of: "\n}\n")?.lowerBound
        else { return text }
        let names = Patchbay.configuration.subcommands.map { $0._commandName } + ["exit-codes"]
        let list = names.joined(separator: " ")
        let offer = "    ((COMP_CWORD != 2)) || COMPREPLY+=($(compgen -W '\(list)' -- \"${cur}\"))"
        return "\(text[..<end])\n\(offer)\(text[end...])"
    }
}
