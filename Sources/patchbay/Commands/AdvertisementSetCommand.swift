import ArgumentParser
import Client
import Model

struct AdvertisementSetCommand: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "set",
        abstract: "Put another TXT record in the place of the published one.",
        discussion: """
            The whole record is replaced; without any key it becomes empty.

              patchbay advertisements set a1 path=/v2 version=3 beta
            """
    )

    @Argument(help: ArgumentHelp("Which one, as `patchbay advertisements` lists it.", valueName: "id"))
    var id: String
    @Argument(help: ArgumentHelp("The TXT record: key=value, key= or key.", valueName: "key=value"))
    var txt: [String] = []
    @OptionGroup var format: JSONOption
    @OptionGroup var options: GlobalOptions

    func run() async throws {
        let advertisement = try await options.client.update(id, txt: TXTArgument.record(txt))
        if format.json { return try options.output.record(advertisement) }
        try options.output.line(AdvertiseCommand.line(advertisement))
    }
}
