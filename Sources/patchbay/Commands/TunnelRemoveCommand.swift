import ArgumentParser
import Client
import Model

struct TunnelRemoveCommand: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "rm",
        abstract: "Remove tunnels by id, or all of them; their connections end.",
        discussion: """
            Where one id is wrong the others are removed all the same.

              patchbay tunnels rm t3 t4
              patchbay tunnels rm --all
            """
    )

    @Argument(help: ArgumentHelp("The tunnels, as `patchbay tunnels` lists them.", valueName: "id"))
    var ids: [String] = []
    @Flag(help: "Remove every tunnel.")
    var all = false
    @OptionGroup var options: GlobalOptions

    func validate() throws {
        if all == !ids.isEmpty { throw ValidationError("Give the ids of the tunnels to remove, or --all.") }
        if ids.contains("") { throw ValidationError("One of the ids is empty: nothing was removed.") }
    }

    func run() async throws {
        let client = try options.client
        if all {
            let count = try await client.removeAllTunnels()
            return try options.output.line(
                count == 0 ? "There was no tunnel." : "Removed \(Formatting.count(count, "tunnel"))."
            )
        }
        try await BatchOperation.run(ids) { id in
            try await client.removeTunnel(id)
            try options.output.line("Removed \(id).")
        }
    }
}
