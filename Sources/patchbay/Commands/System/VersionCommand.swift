import ArgumentParser
import Client
import CVersion
import Model

struct VersionCommand: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "version",
        abstract: "Show the versions of this command and of the broker.",
        discussion: """
            The second line is missing if no broker answers.

              patchbay version
            """
    )

    /// The version of this program with its commit.
    static var text: String { Version.text(commit: String(cString: CVersion_commit())) }

    @OptionGroup var options: GlobalOptions

    func run() async throws {
        try options.output.line("patchbay   \(Self.text)")
        if let status = try? await options.client.status() {
            try options.output.line("patchbayd  \(Console.plain(status.version))")
        }
    }
}
