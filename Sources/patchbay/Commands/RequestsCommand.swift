import ArgumentParser
import Client
import Model

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
