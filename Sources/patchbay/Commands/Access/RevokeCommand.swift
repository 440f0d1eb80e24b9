import ArgumentParser
import Client
import Model

struct RevokeCommand: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "revoke",
        abstract: "End grants and invites, what was made under them, and their connections.",
        discussion: """
            When the command returns, everything of theirs is cut. `patchbay grants` and `patchbay invites` show ids.
            Where one id is wrong the others are ended all the same.

              patchbay revoke 0a1b2c3d
              patchbay revoke --all
            """
    )

    @Argument(help: ArgumentHelp("The grants or invites.", valueName: "id"))
    var ids: [String] = []
    @Flag(help: "End every grant and every open invite.")
    var all = false
    @OptionGroup var options: GlobalOptions

    func validate() throws {
        if all == !ids.isEmpty { throw ValidationError("Give the ids of what to end, or --all.") }
        if ids.map(Self.id).contains("") { throw ValidationError("One of the ids is empty: nothing was ended.") }
    }

    func run() async throws {
        let client = try options.client
        let output = options.output
        if all {
            let ended = try await client.revokeAll().ended
            return try output.line(ended.isEmpty ? "There was nothing to end." : "Ended \(Self.words(ended)).")
        }
        try await BatchOperation.run(ids.map(Self.id)) { id in
            let ended = try await client.revoke(id).ended
            try output.line(ended.isEmpty ? "\(SanitizedText(id)) had ended before." : "Ended \(Self.words(ended)).")
        }
    }

    /// The id of what was pasted: somebody who found a token has the whole of it, which goes no further than here.
    static func id(in text: String) -> String {
        let parts = text.split(separator: "_", omittingEmptySubsequences: false)
        return parts.count >= 2 && (parts[0] == "pbg" || parts[0] == "pbi") ? String(parts[1]) : text
    }

    private static func words(_ ids: [String]) -> String { ids.sorted().joined(separator: ", ") }
}
