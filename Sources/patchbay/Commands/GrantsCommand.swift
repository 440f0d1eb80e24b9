import ArgumentParser
import Client
import Model

struct GrantsCommand: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "grants",
        abstract: "List who was let in: what they may do, how they are known, until when.",
        discussion: """
            `patchbay pair` lets somebody in, `patchbay revoke ID` puts them out.

              patchbay grants
              patchbay grants --all --json | jq '.grants[] | select(.end == "reused")'
            """
    )

    @Flag(help: "Those that ended within the last day, too.")
    var all = false
    @OptionGroup var format: JSONOption
    @OptionGroup var options: GlobalOptions

    func run() async throws {
        let list = try await options.client.grants()
        let shown = GrantList(grants: list.grants.filter { all || $0.end == nil })
        let output = options.output
        if format.json { return try output.document(shown) }
        if shown.grants.isEmpty {
            return try output.line(
                all
                    ? "Nobody was let in. `patchbay pair` invites somebody."
                    : "Nobody is let in now. `patchbay pair` invites somebody."
            )
        }
        try output.table(AccessTables.table(of: shown.grants))
    }
}
