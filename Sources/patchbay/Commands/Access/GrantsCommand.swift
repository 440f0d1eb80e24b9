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

struct RequestsCommand: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "requests",
        abstract: "List the programs on this machine that ask for access, and wait for your answer.",
        discussion: """
            Which program asks is what the kernel says; what it calls itself is what it says. A request ends after five \
            minutes. After 20 wrong codes in an hour none is answered until you reopen them.

              patchbay requests
              patchbay approve WDJB-MJHT
              patchbay requests --reopen
            """
    )

    @Flag(help: "Let requests be answered again after too many wrong codes.")
    var reopen = false
    @OptionGroup var format: JSONOption
    @OptionGroup var options: GlobalOptions

    func run() async throws {
        let client = try options.client
        let output = options.output
        if reopen { try await client.reopenRequests() }
        let list = try await client.requests()
        if format.json { return try output.document(list) }
        if reopen { try output.line("Requests can be answered again.") }
        if list.requests.isEmpty { return try output.line("Nobody is asking for access.") }
        try output.table(AccessTables.table(of: list.requests))
        try output.line("Answer with `patchbay approve CODE` or `patchbay deny CODE`.")
    }
}
