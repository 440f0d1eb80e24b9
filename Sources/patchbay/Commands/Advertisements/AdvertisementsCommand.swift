import ArgumentParser
import Client
import Model

struct AdvertisementsCommand: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "advertisements",
        abstract: "List, change and remove advertisements.",
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
        abstract: "List the advertisements with their names, types, ports and states.",
        discussion: "  patchbay advertisements --json",
        aliases: ["ls"]
    )

    @OptionGroup var format: ListOptions
    @OptionGroup var options: GlobalOptions

    func run() async throws {
        let advertisements = try await options.client.advertisements.list()
        try format.show(
            advertisements,
            id: \.id,
            table: Self.table(of: advertisements),
            ifEmpty: "No advertisements. Publish a service with `patchbay advertise`.",
            on: options
        )
    }

    static func table(of advertisements: [Advertisement]) -> Table {
        Table(
            of: advertisements,
            [
                .init("ID", \.id), .init("NAME", .flexible, \.publishedName.text),
                .init("TYPE", .optional, \.spec.type.text),
                .init("PORT") { "\($0.spec.port)" }, .init("STATE", style: \.state.style, \.state.rawValue),
                .init("REASON", .flexible) { $0.reason ?? "" },
            ]
        )
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
        abstract: "Remove advertisements.",
        discussion: "  patchbay advertisements rm a1 a2"
    )

    @Argument(
        help: ArgumentHelp("Remove these advertisements.", valueName: "id"),
        completion: .objects(.advertisements)
    )
    var ids: [String]
    @OptionGroup var options: GlobalOptions

    func run() async throws {
        try await BatchOperation.run(ids) { id in
            try await options.client.advertisements.remove(id)
            try options.output.line("Removed \(id).")
        }
    }
}

struct AdvertisementSetCommand: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "set",
        abstract: "Replace the TXT record of an advertisement.",
        discussion: """
            Replaces the complete record. Without keys the record becomes empty.

              patchbay advertisements set a1 path=/v2 version=3 beta
            """
    )

    @Argument(help: ArgumentHelp("Change this advertisement.", valueName: "id"), completion: .objects(.advertisements))
    var id: String
    @Argument(help: ArgumentHelp("Set the TXT record: key=value, key= or key.", valueName: "key=value"))
    var txt: [String] = []
    @OptionGroup var format: JSONOption
    @OptionGroup var options: GlobalOptions

    func run() async throws {
        let advertisement = try await options.client.advertisements.update(id, txt: TXTArgument.record(txt))
        if format.json { return try options.output.jsonLine(advertisement) }
        try options.output.line(AdvertiseCommand.line(advertisement))
    }
}
