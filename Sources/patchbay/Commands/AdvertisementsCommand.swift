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
