import ArgumentParser
import Client
import Model

struct RevokeCommand: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "revoke",
        abstract: "Revoke grants and invites and close their connections.",
        discussion: """
            Also removes everything that was created with them, such as tunnels. All connections are closed when the \
            command returns. `patchbay grants` and `patchbay invites` list the IDs. If an ID is unknown, the others are \
            still revoked.

              patchbay revoke 0a1b2c3d
              patchbay revoke --all
            """
    )

    @Argument(help: ArgumentHelp("Revoke these grants or invites.", valueName: "id"), completion: .objects(.grants))
    var ids: [String] = []
    @Flag(help: "Revoke all grants and all open invites.")
    var all = false
    @OptionGroup var options: GlobalOptions

    func validate() throws {
        if all == !ids.isEmpty { throw ValidationError("Specify the IDs to revoke, or --all.") }
        if ids.map(Self.id).contains("") { throw ValidationError("An ID is empty; nothing was revoked.") }
    }

    func run() async throws {
        let client = try options.client
        let output = options.output
        if all {
            let ended = try await client.revokeAll().ended
            return try output.line(ended.isEmpty ? "There was nothing to revoke." : "Revoked \(Self.list(ended)).")
        }
        try await BatchOperation.run(ids.map(Self.id)) { id in
            let ended = try await client.revoke(id).ended
            try output.line(ended.isEmpty ? "\(SanitizedText(id)) had already ended." : "Revoked \(Self.list(ended)).")
        } suggestion: { id in
            let known = try await client.grants().map(\.id) + client.invites().map(\.id)
            return CommandSuggestion.respelled(id, for: "patchbay revoke", among: known)
        }
    }

    /// Extracts the ID from a pasted token. The rest of the token is not sent.
    static func id(in text: String) -> String {
        let parts = text.split(separator: "_", omittingEmptySubsequences: false)
        return parts.count >= 2 && (parts[0] == "pbg" || parts[0] == "pbi") ? String(parts[1]) : text
    }

    private static func list(_ ids: [String]) -> String { ids.sorted().joined(separator: ", ") }
}
