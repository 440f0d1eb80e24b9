import ArgumentParser
import Client
import Model

struct SecretRemoveCommand: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "rm",
        abstract: "Let the broker forget an endpoint's secret.",
        discussion: "  patchbay secret rm shop-test-iphone"
    )

    @Argument(help: ArgumentHelp("Which endpoint.", valueName: "endpoint"))
    var selector: String
    @OptionGroup var options: GlobalOptions

    func run() async throws {
        let client = try options.client
        let list = try await client.endpoints()
        let endpoint = try EndpointSelector(text: selector, command: "patchbay secret rm").choose(among: list.endpoints)
        let wasThere = try await client.forgetSecret(of: endpoint.id)
        try options.output.line(
            wasThere
                ? "The broker has forgotten the secret of \(endpoint.id)."
                : "The broker held no secret of \(endpoint.id), so there was nothing to forget."
        )
    }
}
