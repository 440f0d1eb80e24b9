import ArgumentParser
import Client
import Model

struct InvitesCommand: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "invites",
        abstract: "List the invites that can still be redeemed, and what came of the others.",
        discussion: """
            `patchbay pair` makes them, `patchbay revoke ID` ends them. WRONG counts the wrong secrets that somebody \
            tried; the fifth burns an invite.

              patchbay invites
              patchbay invites --all
            """
    )

    @Flag(help: "Those that ended within the last day, too.")
    var all = false
    @OptionGroup var format: JSONOption
    @OptionGroup var options: GlobalOptions

    func run() async throws {
        let list = try await options.client.invites()
        let shown = InviteList(invites: list.invites.filter { all || $0.end == nil })
        let output = options.output
        if format.json { return try output.document(shown) }
        if shown.invites.isEmpty {
            return try output.line(
                all
                    ? "There was no invite. `patchbay pair` makes one."
                    : "No invite is open. `patchbay pair` makes one."
            )
        }
        try output.table(AccessTables.table(of: shown.invites))
    }
}
