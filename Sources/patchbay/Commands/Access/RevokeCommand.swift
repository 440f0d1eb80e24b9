import ArgumentParser
import Client
import Model

struct RevokeCommand: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "revoke",
        abstract: "Revoke grants and invites and close their connections.",
        discussion: """
            Also removes everything that was created with them, such as tunnels. All connections are closed when the \
            command returns. `patchbay grants` and `patchbay invites` list the IDs. The beginning of an ID is \
            enough, from 4 characters. If an ID is unknown, the others are still revoked.

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
            let (id, ended) = try await Self.revoke(id, client)
            try output.line(ended.isEmpty ? "\(SanitizedText(id)) had already ended." : "Revoked \(Self.list(ended)).")
        } suggestion: { id in
            if id == "all" { return "patchbay revoke --all" }
            let grants = try await client.grants()
            if let named = grants.first(where: { $0.name.text == id }) { return "patchbay revoke \(named.id)" }
            let known = try await grants.map(\.id) + client.invites().map(\.id)
            return CommandSuggestion.respelled(id, for: "patchbay revoke", among: known)
        }
    }

    /// Revokes by an ID, or by the beginning of one.
    private static func revoke(_ id: String, _ client: PatchbayClient) async throws -> (id: String, ended: [String]) {
        do { return (id, try await client.revoke(id).ended) } catch ClientError.refused(let problem)
            where problem.code == .notFound
        {
            let known = (try? await client.grants().map(\.id) + client.invites().map(\.id)) ?? []
            guard let whole = whole(id, among: known) else { throw ClientError.refused(problem) }
            return (whole, try await client.revoke(whole).ended)
        }
    }

    /// Returns the only ID that begins with a text of at least 4 characters.
    static func whole(_ text: String, among ids: [String]) -> String? {
        let found = Set(ids.filter { $0.hasPrefix(text) })
        return text.count >= 4 && found.count == 1 ? found.first : nil
    }

    /// Extracts the ID from a pasted token. The rest of the token is not sent.
    static func id(in text: String) -> String {
        let parts = text.split(separator: "_", omittingEmptySubsequences: false)
        return parts.count >= 2 && (parts[0] == "pbg" || parts[0] == "pbi") ? String(parts[1]) : text
    }

    private static func list(_ ids: [String]) -> String { ids.sorted().joined(separator: ", ") }
}
