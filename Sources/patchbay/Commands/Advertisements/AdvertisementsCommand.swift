import ArgumentParser
import Client
import Model

struct AdvertisementsCommand: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "advertisements",
        abstract: "List what the broker publishes; change its TXT record; withdraw it.",
        discussion: """
              patchbay advertisements
              patchbay advertisements set a1 path=/v2 beta
              patchbay advertisements rm a1
            """,
        subcommands: [AdvertisementListCommand.self, AdvertisementSetCommand.self, AdvertisementRemoveCommand.self],
        defaultSubcommand: AdvertisementListCommand.self
    )
}

struct AdvertisementListCommand: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "list",
        abstract: "List what the broker publishes, under which name, and whether it stands.",
        discussion: "  patchbay advertisements --json",
        aliases: ["ls"]
    )

    @OptionGroup var format: JSONOption
    @OptionGroup var options: GlobalOptions

    func run() async throws {
        let list = try await options.client.advertisements()
        let output = options.output
        if format.json { return try output.document(list) }
        if list.advertisements.isEmpty {
            return try output.line("Nothing is published. `patchbay advertise --help` shows how.")
        }
        try output.table(Self.table(of: list.advertisements))
    }

    static func table(of advertisements: [Advertisement]) -> Table {
        var table = Table(columns: [
            .init(title: "ID"), .init(title: "NAME", isFlexible: true), .init(title: "TYPE"), .init(title: "PORT"),
            .init(title: "STATE"), .init(title: "WHY", isFlexible: true),
        ])
        table.rows = advertisements.map { advertisement in
            [
                .init(advertisement.id), .init(advertisement.finalName.text), .init(advertisement.spec.type.text),
                .init("\(advertisement.spec.port)"),
                .init(advertisement.state.rawValue, advertisement.state.style), .init(advertisement.reason ?? ""),
            ]
        }
        return table
    }
}

extension Advertisement.State {
    var style: ANSIStyle {
        switch self {
        case .published: .green
        case .waiting, .registering: .yellow
        case .failed: .red
        }
    }
}

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
