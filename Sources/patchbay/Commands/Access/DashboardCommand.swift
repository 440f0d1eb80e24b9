import ArgumentParser
import Client
import FoundationEssentials
import Model

struct DashboardCommand: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "dashboard",
        abstract: "Sign in to the broker's web page.",
        discussion: """
            Prints the address of the page with a one-time code, and opens it where a desktop is. The code works once, \
            within 60 seconds, in a browser of the same user. The session has your rights for 12 hours, and `patchbay \
            grants` lists it.

            For a broker on another machine, forward its port with the printed ssh command first.

              patchbay dashboard
              patchbay dashboard --no-open
              patchbay dashboard --broker ssh://anna@lab
            """
    )

    @Flag(help: "Print the address only.")
    var noOpen = false
    @OptionGroup var format: JSONOption
    @OptionGroup var options: GlobalOptions

    func run() async throws {
        let client = try options.client
        let code = try await Self.code(options)
        let output = options.output
        if format.json { return try output.document(code) }
        let browser = Browser(client.address, ProcessInfo.processInfo.environment)
        for line in browser.lines(for: code) { try output.line(line) }
        if !noOpen { browser.open(code.url) }
    }

    /// Returns a new code.
    ///
    /// - Throws: `CLIError` if the options select a grant; `ClientError`.
    static func code(_ options: GlobalOptions) async throws -> DashboardCode {
        let client = try options.client
        if try options.usesGrant { throw needsOwner(client.address) }
        return try await client.dashboardCode()
    }

    /// The error for a broker that this command reaches with a grant. Only the control socket identifies a user.
    private static func needsOwner(_ address: BrokerAddress) -> CLIError {
        guard case .remote(let host, _, _) = address else {
            return CLIError(
                status: .notPermitted,
                message: "a code for the dashboard is for an owner on the control socket, not for a grant",
                hint: "patchbay dashboard without --broker; or paste the grant's token into the page"
            )
        }
        return CLIError(
            status: .notPermitted,
            message: "a code for the dashboard of \(SanitizedText(host)) is given on that machine only, to its owner",
            hint:
                "patchbay dashboard --broker ssh://USER@\(SanitizedText(host)); or open https://\(address) and paste a token"
        )
    }
}
