import ArgumentParser
import Client

struct AdvertisementRemoveCommand: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "rm",
        abstract: "Withdraw what is published; the network is told at once.",
        discussion: "  patchbay advertisements rm a1 a2"
    )

    @Argument(help: ArgumentHelp("Which ones, as `patchbay advertisements` lists them.", valueName: "id"))
    var ids: [String]
    @OptionGroup var options: GlobalOptions

    func run() async throws {
        try await BatchOperation.run(ids) { id in
            try await options.client.withdraw(id)
            try options.output.line("Withdrew \(id).")
        }
    }
}
